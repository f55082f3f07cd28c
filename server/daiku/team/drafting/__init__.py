"""The agents that revise prose, one file each: draft, style, reference, guard, eval, and the document they work on."""
