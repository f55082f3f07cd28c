"""Beside our arms in the same worlds: other projects' own code, and notes that a person wrote; `npm run world`."""
