"""Work items as pure functions: what is written about them on a forge, and what is read there."""
