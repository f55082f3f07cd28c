"""Retries: when a model is asked again, and with which changes to the request."""
