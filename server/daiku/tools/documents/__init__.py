"""The tools of the drafting agents: look for references, compare, judge, apply a change map as one edit."""
