"""Workers: they poll for items, process several at a time, and report their health."""
