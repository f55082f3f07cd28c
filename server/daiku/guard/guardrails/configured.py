"""Guardrails that the settings configure for every run, and the one against keys, tokens, and passwords."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from daiku.domain.guardrails import GuardrailAction, GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, to_text
from daiku.guard.rules.redact import Redactor
from daiku.run.rules.outside import Guard
from daiku.settings.config import GuardrailSettings
from daiku.texts.text import text

SHORT_CHARACTERS = 20_000
"""Maximum characters to check without a thread."""


class SecretsGuard(Guardrail):
    """Guardrail that blocks answers and calls containing a token shape or one of `secrets`, or warns of them."""

    def __init__(self, *, secrets: Iterable[str] = (), action: Literal["warn", "block"] = "block") -> None:
        super().__init__()
        if action not in ("warn", "block"):
            raise ValueError(f"action must be 'warn' or 'block', not {action!r}")
        self._redact = Redactor(secrets)
        self._action: GuardrailAction = action

    @property
    def judges_output(self) -> bool:
        """True if it can block outputs."""
        return self._action == "block"

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Check an answer for secrets."""
        content = to_text(data)
        is_short = len(content) <= SHORT_CHARACTERS
        redacted = self._redact(content) if is_short else await asyncio.to_thread(self._redact, content)
        return (
            PASS
            if redacted == content
            else GuardrailAnswer(action=self._action, reason=text("guardrails.secret"))
        )

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Check the arguments of a call, and the text next to it, for secrets."""
        return await self.validate_output(data)


def build_guardrails(
    settings: GuardrailSettings, roots: tuple[Path, ...], secrets: Iterable[str]
) -> tuple[Guard, ...]:
    """Build the guardrails of `[guardrails]` in the settings for the workspace of `roots`.

    Similarity is checked if the settings name reference files. Possible secrets, including `secrets`, cause a
    warning. Without a workspace there are only patterns.
    """
    patterns: tuple[Guard, ...] = ()
    if settings.regex_blocks:
        from daiku.guard.guardrails.guardrail import Guardrail  # when used

        patterns = (Guardrail(regex_blocks=settings.regex_blocks),)
    if not roots:
        return patterns

    guardrails = (*patterns, SecretsGuard(secrets=secrets, action="warn"))
    if not settings.references:
        return guardrails
    from daiku.guard.guardrails.references import WorkspaceReferences  # when used
    from daiku.guard.guardrails.similarity import SimilarityGuard  # when used

    warn, block = settings.similarity_warn, settings.similarity_block
    references = WorkspaceReferences(roots, settings.references)
    return (*guardrails, SimilarityGuard(references=references, warn=warn, block=block))
