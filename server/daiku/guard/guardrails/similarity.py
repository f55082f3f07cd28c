"""Guardrail against near-copies of reference texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from daiku.domain.guardrails import GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, to_text
from daiku.guard.rules.guardrails.fingerprints import (
    BLOCK,
    WARN,
    Fingerprints,
    fingerprints,
    similarity,
    similarity_action,
)
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.guard.guardrails.references import WorkspaceReferences


class SimilarityGuard(Guardrail):
    """Guardrail that compares answers and text that tools write with references (R1.63–R1.65).

    A score of at least `warn` is a warning, one above `block` blocks. The score is the share of the shorter text that
    the other contains, 0 to 1; renamed and reordered copies score high. The user's messages are not compared.

    `references`: texts by name, or the files of a workspace. `with_corpus`: also compare with the package's small
    corpus of free software. Raises ValueError if `warn` is above `block`.
    """

    def __init__(
        self,
        *,
        references: Mapping[str, str] | WorkspaceReferences | None = None,
        warn: float = WARN,
        block: float = BLOCK,
        with_corpus: bool = True,
    ) -> None:
        from daiku.guard.guardrails.references import WorkspaceReferences  # when used

        super().__init__()
        if not 0 <= warn <= block <= 1:
            raise ValueError(f"warn must be at most block, both from 0 to 1, not {warn} and {block}")
        self._warn, self._block, self._with_corpus = warn, block, with_corpus
        self._has_references: Callable[[], bool] = lambda: True
        self._may_exist = self._has_references
        if isinstance(references, WorkspaceReferences):
            self._has_references, self._may_exist, self._read = (
                references.any,
                references.may_exist,
                references.read,
            )
        else:
            known = {name: fingerprints(each) for name, each in (references or {}).items()}
            self._read: Callable[[], Mapping[str, Fingerprints]] = lambda: known

    @property
    def judges_output(self) -> bool:
        """True if there is anything to compare with."""
        return self._has_references()

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Compare an answer with the references (R1.63, R1.64)."""
        if not self._may_exist():  # the usual case needs no thread
            return PASS
        return await asyncio.to_thread(self._compare, to_text(data))

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Compare what a call writes, and the text next to it, with the references."""
        return await self.validate_output(data)

    def most_similar(self, content: str) -> tuple[float, str]:
        """Return the highest score of `content`, and the reference's name. Slow: run in a thread."""
        from daiku.guard.guardrails.references import load_corpus  # when used

        own, best = fingerprints(content), (0.0, "")
        references = {**self._read(), **(load_corpus() if self._with_corpus else {})}
        for name, other in references.items():
            best = max(best, (similarity(own, other), name))
        return best

    def _compare(self, content: str) -> GuardrailAnswer:
        if not self._has_references():
            return PASS
        score, name = self.most_similar(content)
        action = similarity_action(score, self._warn, self._block)
        if action == "pass":
            return PASS
        return {"action": action, "reason": text("guardrails.similar", score=f"{score:.2f}", name=name)}
