"""Trace lines and spans derived from a session's chunks. Pure."""
