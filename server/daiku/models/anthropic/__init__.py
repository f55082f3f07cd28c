"""Provider for Anthropic's Messages protocol."""
