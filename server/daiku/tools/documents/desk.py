"""Shared dependencies of the tools of the drafting agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from daiku.dataclass import dataclass, field
from daiku.domain.work.documents import Evaluated, KeptEvaluation, Passage, ReferencesFound
from daiku.guard.rules.guardrails.fingerprints import Fingerprints
from daiku.tools.files.seen import SeenTexts


class Evaluations(Protocol):
    """The store of evaluations of texts (R1.66)."""

    def lookup(self, key: str) -> Evaluated | None: ...

    def all(self, workspace: str) -> tuple[KeptEvaluation, ...]: ...

    def keep(self, key: str, evaluation: Evaluated, *, workspace: str, session: str, path: str) -> None: ...


class References(Protocol):
    """Search in the passages of the workspace's references (R1.62)."""

    async def search(
        self, passages: Sequence[Passage], questions: Sequence[str], most: int
    ) -> ReferencesFound:
        """Return the passages that are nearest to one of `questions`. Raises DaikuError."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentDesk:
    """Dependencies of the document tools.

    `redact` masks secrets as the journal does; `evaluations` None: evaluations are not stored; `references`
    opens the search in references (None: there is none). `known` returns the fingerprints, by name, of all
    texts that a new one is compared with.
    """

    redact: Callable[[str], str] = str
    evaluations: Evaluations | None = None
    references: Callable[[], References] | None = None
    known: Callable[[], Mapping[str, Fingerprints]] = dict[str, Fingerprints]
    seen_texts: SeenTexts = field(default_factory=SeenTexts)
