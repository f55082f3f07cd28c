"""Edge: the language server; the only importer of pygls."""
