"""Where text to be replaced stands in a file, and why it was not found."""
