"""Pure functions of search: terms of a text, hashed vectors, nearest neighbors, and hybrid scores."""
