"""The agents that learn from runs for the playbook: the Reflector and the Curator (ACE)."""
