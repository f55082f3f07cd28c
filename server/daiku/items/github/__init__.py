"""GitHub as a source of items, by token or as an App, on github.com or an own instance."""
