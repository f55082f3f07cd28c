"""What a call names and hands over: tool names, arguments against their schema, references to earlier results."""
