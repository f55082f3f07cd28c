"""Shell commands read and judged: grammar, wrappers, dangers, rules."""
