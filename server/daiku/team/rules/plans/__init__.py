"""Plans: parsed, proposed, rendered, and their step statuses."""
