"""The playbook as pure functions: lessons from what a run did, doubts about their texts, changes, text forms."""
