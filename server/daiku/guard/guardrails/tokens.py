"""The token guard: a limit of tokens for a session, a day or a user, asked before every call of a model or a tool."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from daiku.domain.errors import Failure
from daiku.domain.guardrails import GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, block, text_of
from daiku.models.tokens import estimate
from daiku.texts.text import Text, text

Scope = Literal["session", "day", "user"]
NEAR = 0.8
"""Part of the limit from which on the person is warned."""
_SCOPES = {
    "session": text("guardrails.scope_session"),
    "day": text("guardrails.scope_day"),
    "user": text("guardrails.scope_user"),
}


class TokenGuard(Guardrail):
    """Ends runs with status `limit` once `max_tokens` are used (R1.48, R1.49). What a call will take is counted
    beforehand: the whole request by estimate, tools' arguments and results; once the provider has said what it used,
    that counts instead (R1.34). Asked before each call of a model and of a tool (R1.35).

    `scope`: one total for each session, for each day (UTC), or for the user of this computer. `store`: None counts in
    memory, the path of a SQLite file, a Redis URL (redis://…); processes that share a store share its totals.

    Raises TypeError and ValueError, each with the argument's name.
    """

    def __init__(self, *, max_tokens: int, scope: Scope = "session", store: str | Path | None = None) -> None:
        from daiku.guard.guardrails.counters import counter_at  # when used

        super().__init__()
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # whoever does not check types
            raise TypeError(f"max_tokens must be a whole number, not {max_tokens!r}")
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
        if scope not in get_args(Scope):
            raise ValueError(f"scope must be 'session', 'day' or 'user', not {scope!r}")
        self.max_tokens = max_tokens
        self.scope: Scope = scope
        self._counter = counter_at(store)
        self._warned: set[str] = set()

    def begin(self, session: str, used: int) -> None:
        """Count what a session had used before this process knew of it, where only this process counts."""
        from daiku.guard.guardrails.counters import MemoryCounter  # when used

        if isinstance(self._counter, MemoryCounter) and self.scope == "session":
            self._counter.totals.setdefault(self._name(session), used)

    async def take(self, session: str, tokens: int) -> Failure | None:
        """Count `tokens` that are about to be used; why they may not be, where the limit is reached."""
        name = self._name(session)
        if await self._counter.take(name, tokens, self.max_tokens) is not None:
            return None
        used = await self._counter.total(name)
        return Failure(kind="limit", message=self._reached(used, tokens), hint=text("guardrails.tokens_hint"))

    async def add(self, session: str, tokens: int) -> None:
        """Count tokens that were used, or give back (below 0) what was counted too much."""
        if tokens:
            await self._counter.add(self._name(session), tokens)

    async def used(self, session: str = "") -> int:
        """Tokens that are counted in its scope now."""
        return await self._counter.total(self._name(session))

    async def warning(self, session: str) -> Text | None:
        """What the person is told, once, where little is left."""
        name = self._name(session)
        if name in self._warned or (used := await self._counter.total(name)) < NEAR * self.max_tokens:
            return None
        self._warned.add(name)
        return text("guardrails.tokens_near", used=used, most=self.max_tokens, scope=_SCOPES[self.scope])

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Whether `data` still fits; it is not counted. Outside a run only: there every call is asked about."""
        used, more = await self.used(), estimate(text_of(data))
        if used + more <= self.max_tokens:
            return PASS
        return block(self._reached(used, more))

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """As for an input."""
        return await self.validate_input(data)

    def _reached(self, used: int, needed: int) -> Text:
        scope = _SCOPES[self.scope]
        return text("guardrails.tokens", used=used, most=self.max_tokens, needed=needed, scope=scope)

    def _name(self, session: str) -> str:
        match self.scope:
            case "session":
                return f"session:{session}"
            case "day":
                return f"day:{datetime.now(UTC):%Y-%m-%d}"
            case "user":
                return f"user:{_user()}"


def _user() -> str:
    import getpass  # when used

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a process without a name: of its own user
        return "unknown"
