"""Tool calls written as text by models without native tool calls, and their arguments."""
