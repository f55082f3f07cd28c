"""Changes of the playbook that wait, tried on runs on record, and kept, refused or left undecided by the rule."""
