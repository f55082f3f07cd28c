"""The Agent Client Protocol: the same runs for editors that speak it over stdio; the only door to its library."""
