"""Context files of work items: a readable copy of the journal below `contexts/`, never used as input."""
