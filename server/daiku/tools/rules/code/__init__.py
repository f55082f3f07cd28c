"""Facts about source code: kinds of projects, the repository map, and the definition around a line."""
