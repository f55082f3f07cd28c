"""What the loop asks of the world for one run: the model, the tools, the guard, the person."""
