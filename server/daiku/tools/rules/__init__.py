"""Pure functions of the tools: code maps, web research, and notebooks."""
