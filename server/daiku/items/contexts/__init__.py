"""Context files of work items: a copy of the journal below `contexts/` for people, never read as truth."""
