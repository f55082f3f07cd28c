"""Data that agents hand over to each other: plans, briefs, research, patches, reviews."""
