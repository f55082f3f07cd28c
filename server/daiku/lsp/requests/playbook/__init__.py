"""Wire methods on the playbook, one module a group."""
