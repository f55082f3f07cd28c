"""Terminal prompts: approvals, keys, and hunk selection."""
