"""Judging texts: how they are compared, which patterns are cheap, how much one text is like another."""
