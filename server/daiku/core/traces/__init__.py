"""Traces: the chunks of a session as lines and as spans, and spans as OTLP sends them."""
