"""The journal of sessions, and exports of it."""
