"""The agents of the coding team, one file each."""
