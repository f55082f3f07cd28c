"""The playbook's API for fronts: list, search, change, review, import, export, and the Generator."""
