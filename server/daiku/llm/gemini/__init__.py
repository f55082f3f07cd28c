"""Gemini's generateContent protocol."""
