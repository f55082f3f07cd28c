"""Tools of the drafting agents."""
