"""The similarity guard: what is written must not be a near-copy of a reference."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from daiku.domain.guardrails import GuardrailAnswer
from daiku.guard.guardrails.guardrail import PASS, Guardrail, text_of
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
    """Compares what is written, answers and what tools are to write, with references (R1.63–R1.65): a score from
    `warn` on is warned of, one above `block` is blocked. The score says how much of the shorter text stands in the
    other, 0 to 1; renamed and reordered copies score high. What a person says is not compared.

    `references`: texts by their names, or the files of a workspace. `with_corpus`: the package's small corpus of free
    software is compared too. Raises ValueError where `warn` is above `block`.
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
        self._there: Callable[[], bool] = lambda: True
        self._may_be = self._there
        if isinstance(references, WorkspaceReferences):
            self._there, self._may_be, self._read = references.any, references.may_be, references.read
        else:
            known = {name: fingerprints(each) for name, each in (references or {}).items()}
            self._read: Callable[[], Mapping[str, Fingerprints]] = lambda: known

    @property
    def judges_output(self) -> bool:
        """Whether there is anything to compare with: without files of reference a workspace has no such guard."""
        return self._there()

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Compare an answer with the references (R1.63, R1.64)."""
        if not self._may_be():  # no thread for what is mostly so
            return PASS
        return await asyncio.to_thread(self._compare, text_of(data))

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Compare what a call is to write, and what is said beside it."""
        return await self.validate_output(data)

    def most_similar(self, said: str) -> tuple[float, str]:
        """The highest score of `said`, and the name of what it is like. Takes time: for a thread."""
        from daiku.guard.guardrails.references import corpus  # when used

        own, best = fingerprints(said), (0.0, "")
        known = {**self._read(), **(corpus() if self._with_corpus else {})}
        for name, other in known.items():
            best = max(best, (similarity(own, other), name))
        return best

    def _compare(self, said: str) -> GuardrailAnswer:
        if not self._there():
            return PASS
        score, name = self.most_similar(said)
        action = similarity_action(score, self._warn, self._block)
        if action == "pass":
            return PASS
        return {"action": action, "reason": text("guardrails.similar", score=f"{score:.2f}", name=name)}
