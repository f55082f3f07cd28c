"""Trials of lessons: runs on record done again in a copy of the project, told other lessons, and checked by program."""
