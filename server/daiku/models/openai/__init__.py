"""Provider for OpenAI's two protocols and for compatible services."""
