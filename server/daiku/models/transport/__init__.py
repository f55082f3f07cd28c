"""Transport shared by all providers: HTTP, streams, errors, and tool calls."""
