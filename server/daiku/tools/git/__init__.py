"""Git as tools, its errors in plain words, worktrees; copies of remote repositories, fetched and pushed."""
