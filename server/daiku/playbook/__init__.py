"""The playbook: lessons about a repository and a user; stored, searched, given to runs, and scored by
outcome."""
