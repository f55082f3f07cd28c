"""Shared code of the GitHub and GitLab sources: requests, answer shapes, trust, reading, news, and writing."""
