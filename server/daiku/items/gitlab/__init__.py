"""GitLab as a source of items, on gitlab.com or an own instance."""
