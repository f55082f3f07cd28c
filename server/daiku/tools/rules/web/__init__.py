"""Pages and their findings, for the researcher."""
