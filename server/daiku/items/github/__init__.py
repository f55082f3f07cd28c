"""GitHub as a source of items: find, read, look, apply; by token or as an App, on github.com or an own instance."""
