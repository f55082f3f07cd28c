"""Text worked on as text: truncated, fenced, made visible, lines left out."""
