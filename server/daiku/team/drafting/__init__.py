"""The agents that revise prose: draft, style, reference, guard, eval, and the document agent that leads them."""
