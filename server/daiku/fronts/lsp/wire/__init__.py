"""JSON-RPC: bytes to messages, requests to answers."""
