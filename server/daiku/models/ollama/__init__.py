"""Provider for Ollama's chat protocol."""
