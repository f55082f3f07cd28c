"""What the editor holds: documents, positions, edits, notebooks, diagnostics."""
