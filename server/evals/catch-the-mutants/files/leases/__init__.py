"""Things that are lent for a while."""
