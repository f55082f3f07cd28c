"""What is on record about a bullet: what it advises, commands that were tried, hunks that were kept or not, words."""
