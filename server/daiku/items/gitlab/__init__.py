"""GitLab as a source of items: find, read, look, apply; on gitlab.com or an own instance."""
