"""Daiku over HTTP (`daiku serve`): the same sessions and runs as the editor's, streamed as server-sent events."""
