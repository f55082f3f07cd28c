"""Editor documents: open texts, edits, notebooks, diagnostics."""
