"""Front for the Agent Client Protocol (ACP) over stdio; the only package that imports its library."""
