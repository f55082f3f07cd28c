"""Commands on work items: the list of them, and what a person asks of one."""
