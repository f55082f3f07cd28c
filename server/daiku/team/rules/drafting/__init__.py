"""Prose revised by the drafting agents: headings, parts, replies, the machine that leads through the stages."""
