"""Every sentence for a person, by language."""
