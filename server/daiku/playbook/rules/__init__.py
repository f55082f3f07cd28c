"""Pure functions of the playbook: lessons from runs, changes, search, and text forms."""
