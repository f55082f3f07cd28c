"""The playbook: lessons about a repository and a person, kept, found again, told to runs, and counted by what came of it."""
