"""Ollama's chat protocol."""
