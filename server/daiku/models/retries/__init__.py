"""Retries of model requests, unchanged or with changes."""
