"""HTTP front (`daiku serve`): the editor's sessions and runs, streamed as server-sent events."""
