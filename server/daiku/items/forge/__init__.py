"""What the sources of GitHub and GitLab share: requests, shapes, trust, reading, news, and writing."""
