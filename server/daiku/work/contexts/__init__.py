"""Context files of work items: the journal once more as files below `contexts/`, made from it and never read as truth."""
