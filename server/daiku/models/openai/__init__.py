"""OpenAI's two protocols, and everything compatible with them."""
