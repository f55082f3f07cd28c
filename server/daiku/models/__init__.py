"""Model providers: one module each, with pure encoding and decoding around the transport."""
