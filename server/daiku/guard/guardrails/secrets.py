"""The secrets guard: no key, token or password in what is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

from daiku.domain.guardrails import GuardrailAction, GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, text_of
from daiku.guard.rules.redact import Redactor
from daiku.texts.text import text

SHORT = 20_000
"""Characters that are looked through without a thread."""


class SecretsGuard(Guardrail):
    """Blocks, or warns of, answers and calls that hold something with the form of a secret, or one of `secrets`, also
    encoded; by what the journal's redaction knows. What a person says passes: it is redacted on record.

    Raises ValueError for another `action`."""

    def __init__(self, *, secrets: Iterable[str] = (), action: Literal["warn", "block"] = "block") -> None:
        super().__init__()
        if action not in ("warn", "block"):
            raise ValueError(f"action must be 'warn' or 'block', not {action!r}")
        self._redact = Redactor(secrets)
        self._action: GuardrailAction = action

    @property
    def judges_output(self) -> bool:
        """Whether it can block an output."""
        return self._action == "block"

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Look for secrets in an answer."""
        said = text_of(data)
        short = len(said) <= SHORT
        redacted = self._redact(said) if short else await asyncio.to_thread(self._redact, said)
        return (
            PASS
            if redacted == said
            else GuardrailAnswer(action=self._action, reason=text("guardrails.secret"))
        )

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Look for secrets in what a call is given, and in what is said beside it."""
        return await self.validate_output(data)
