"""Plain-text helpers: truncation, fencing, showing hidden characters, recognizing elision lines."""
