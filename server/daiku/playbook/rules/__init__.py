"""The playbook as pure functions: lessons from what a run did, changes, text forms."""
