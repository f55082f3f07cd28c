"""Lessons by rule: what runs taught as proposals, and what becomes of them in a playbook."""
