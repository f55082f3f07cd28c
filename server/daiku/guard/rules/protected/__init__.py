"""Names, paths and addresses that are protected whatever a rule allows."""
