"""Files on disk: those of the workspace (paths, ignores, encodings, checkpoints), and folders for copies of projects."""
