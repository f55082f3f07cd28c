"""Commands on the playbook: its bullets, what waits for review, and playbooks as files."""
