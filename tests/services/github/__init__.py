"""A GitHub of this machine: npm's `emulate` behind a proxy that adds what it lacks, with real repositories."""
