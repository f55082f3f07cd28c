"""Git as tools, its errors in plain words, and worktrees."""
