"""Work items: keys, data from a forge, and intents."""
