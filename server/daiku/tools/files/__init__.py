"""Tools that read, search and change files, and look at them again after an edit."""
