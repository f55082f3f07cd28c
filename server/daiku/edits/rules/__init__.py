"""Parsers for every edit format that models write; each builds a Patch."""
