"""Tools that read, search, and change files."""
