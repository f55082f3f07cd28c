"""Pure rules of the drafting agents: headings, document parts, progress, and the state machine of the stages."""
