"""Proof that work is done: evidence, failures, acceptance checks, and claims."""
