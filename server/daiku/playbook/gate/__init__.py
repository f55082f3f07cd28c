"""The gate, as far as it reads and writes: what a run would be told with and without a change, what trials have cost."""
