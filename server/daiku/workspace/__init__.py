"""Files on disk inside the workspace: paths, ignores, encodings, checkpoints."""
