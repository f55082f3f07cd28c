"""What every provider's transport shares: HTTP, streams, errors, calls."""
