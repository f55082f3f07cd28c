"""JSON-RPC: framing, encoding, and request handling."""
