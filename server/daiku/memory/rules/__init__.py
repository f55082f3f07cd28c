"""Search as pure functions: the terms of a text, vectors from words, the nearest of many vectors, fused scores."""
