"""The playbook: lessons about a repository and a user, given to runs and scored by outcome."""
