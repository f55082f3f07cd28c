"""Commands for the playbook: bullets, pending changes, and import and export."""
