"""Files on disk inside the workspace: paths, ignore rules, encodings, checkpoints."""
