"""Tool calls: tool names, checking arguments against a schema, references to earlier results."""
