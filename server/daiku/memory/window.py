"""The short-term part of a memory: the last things that were said in each session, in a deque."""

from __future__ import annotations

from collections import deque

WINDOW = 6
"""Things said that a session's window holds."""
MOST_SESSIONS = 256
SHORT = 40
"""A question of fewer characters is searched together with what was said before it: “and the other one?”."""
BEFORE = 2


class Windows:
    """The windows of the sessions used last (R1.16). The conversation itself is the journal's: these only help to
    understand a question, and are gone with the process."""

    def __init__(self) -> None:
        self._said: dict[str, deque[str]] = {}

    def add(self, session: str, said: str) -> None:
        """Put what was said at the end of its session's window."""
        window = self._said.pop(session, None) or deque[str](maxlen=WINDOW)
        window.append(said)
        self._said[session] = window  # the last of all: used last
        while len(self._said) > MOST_SESSIONS:
            del self._said[next(iter(self._said))]

    def of(self, session: str) -> tuple[str, ...]:
        """What the window of a session holds, the oldest first."""
        return tuple(self._said.get(session, ()))

    def in_context(self, session: str, question: str) -> str:
        """The question, with what was said before it where it is too short to stand alone."""
        before = self.of(session)[-BEFORE:] if session and len(question) < SHORT else ()
        return "\n".join([*before, question])
