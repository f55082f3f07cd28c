"""What a search in a playbook looks through: a playbook as a value, or an index that is kept beside its table."""
