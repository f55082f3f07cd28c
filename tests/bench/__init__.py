"""Benchmarks: ratios against a floor measured in the same run; `npm run bench`."""
