"""Edge: models; one provider a file, pure encode and decode around its transport."""
