"""What proves that work is done: evidence, failures, acceptance checks, claims."""
