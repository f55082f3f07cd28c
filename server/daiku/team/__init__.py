"""The agents: each one a name, a prompt, a set of tools and a result type; all of them in one table."""
