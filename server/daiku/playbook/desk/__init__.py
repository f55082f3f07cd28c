"""The playbook for fronts and programs: what a person asks of it, playbooks as files, the Generator and its parts."""
