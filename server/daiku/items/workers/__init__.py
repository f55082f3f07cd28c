"""Workers: they look for items and work several at a time; which are alive, and how each is."""
