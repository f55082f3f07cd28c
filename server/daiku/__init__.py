"""Daiku: an AI software engineer that lives in the editor as a language server."""

__version__ = "0.1.0"
