"""Token limits for a session, a day, or a user, checked before every model call and tool call."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from daiku.domain.errors import Failure
from daiku.domain.guardrails import GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, block, to_text
from daiku.models.tokens import estimate
from daiku.texts.text import Text, text

Scope = Literal["session", "day", "user"]
WARN_FRACTION = 0.8
"""Fraction of the limit from which on the user is warned."""
_SCOPES = {
    "session": text("guardrails.scope_session"),
    "day": text("guardrails.scope_day"),
    "user": text("guardrails.scope_user"),
}


class TokenGuard(Guardrail):
    """Guardrail that ends runs with status `limit` once `max_tokens` are used (R1.48, R1.49).

    Checked before each model call and tool call (R1.35). The tokens of a call are estimated beforehand: the complete
    request, tool arguments, and results. They are replaced by the usage that the provider reports (R1.34).

    `scope`: one total for each session, for each day (UTC), or for the user of this computer. `store`: None counts in
    memory; the path of a SQLite file or a Redis URL (redis://…) shares totals between processes.

    Raises TypeError and ValueError, each with the argument's name.
    """

    def __init__(self, *, max_tokens: int, scope: Scope = "session", store: str | Path | None = None) -> None:
        from daiku.guard.guardrails.counters import open_counter  # when used

        super().__init__()
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not check types
            raise TypeError(f"max_tokens must be a whole number, not {max_tokens!r}")
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
        if scope not in get_args(Scope):
            raise ValueError(f"scope must be 'session', 'day' or 'user', not {scope!r}")
        self.max_tokens = max_tokens
        self.scope: Scope = scope
        self._counter = open_counter(store)
        self._warned: set[str] = set()

    def begin(self, session: str, used: int) -> None:
        """Set the tokens that a session used before this process started, if counting is in memory."""
        from daiku.guard.guardrails.counters import MemoryCounter  # when used

        if isinstance(self._counter, MemoryCounter) and self.scope == "session":
            self._counter.totals.setdefault(self._scope_name(session), used)

    async def take(self, session: str, tokens: int) -> Failure | None:
        """Reserve `tokens`. Return the failure if the limit is reached, else None."""
        name = self._scope_name(session)
        if await self._counter.take(name, tokens, self.max_tokens) is not None:
            return None
        used = await self._counter.total(name)
        return Failure(
            kind="limit", message=self._describe_limit(used, tokens), hint=text("guardrails.tokens_hint")
        )

    async def add(self, session: str, tokens: int) -> None:
        """Add tokens that were used, or return (below 0) reserved ones."""
        if tokens:
            await self._counter.add(self._scope_name(session), tokens)

    async def used(self, session: str = "") -> int:
        """Return the tokens used in the current scope."""
        return await self._counter.total(self._scope_name(session))

    async def warning(self, session: str) -> Text | None:
        """Return a warning for the user, once, when little is left."""
        name = self._scope_name(session)
        if (
            name in self._warned
            or (used := await self._counter.total(name)) < WARN_FRACTION * self.max_tokens
        ):
            return None
        self._warned.add(name)
        return text("guardrails.tokens_near", used=used, most=self.max_tokens, scope=_SCOPES[self.scope])

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Check that `data` still fits the limit, without counting it. For use outside runs."""
        used, needed = await self.used(), estimate(to_text(data))
        if used + needed <= self.max_tokens:
            return PASS
        return block(self._describe_limit(used, needed))

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Check that `data` still fits the limit, without counting it."""
        return await self.validate_input(data)

    def _describe_limit(self, used: int, needed: int) -> Text:
        scope = _SCOPES[self.scope]
        return text("guardrails.tokens", used=used, most=self.max_tokens, needed=needed, scope=scope)

    def _scope_name(self, session: str) -> str:
        match self.scope:
            case "session":
                return f"session:{session}"
            case "day":
                return f"day:{datetime.now(UTC):%Y-%m-%d}"
            case "user":
                return f"user:{_get_user()}"


def _get_user() -> str:
    import getpass  # when used

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the process has no user name
        return "unknown"
