"""Lessons by rule: derive proposals from runs, and merge them into a playbook."""
