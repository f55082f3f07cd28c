"""Who works: agents as data, a name, a prompt, tools and a result type; one table."""
