"""Why a text must not become active without a person: what it copies, names, hides, or says to the agent."""
