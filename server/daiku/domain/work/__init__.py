"""What agents hand to one another: plans, briefs, research, patches, reviews."""
