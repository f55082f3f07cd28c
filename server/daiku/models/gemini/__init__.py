"""Provider for Gemini's generateContent protocol."""
