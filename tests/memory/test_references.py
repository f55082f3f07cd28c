"""The references of a workspace in the store of memories: searched by vectors, or by words (R1.62)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from daiku.domain.errors import Failure, LLMError
from daiku.domain.work.documents import Passage
from daiku.memory.opening import BY_WORDS, ReferenceIndex
from daiku.memory.rules.vectors import Vector
from daiku.memory.sqlite_store import SqliteMemories
from daiku.models.embed import HashedWords
from daiku.texts.text import Text

CRANE = Passage(source="a.md:1", text="The crane lifts the beam over the yard.", score=0)
WIND = Passage(source="a.md:9", text="強い風の日には足場に上がらない。", score=0)
OTHER = Passage(source="b.md:1", text="Invoices are paid within thirty days.", score=0)


class Silent(HashedWords):
    """An embedder whose service does not answer."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise LLMError(Failure(kind="connection", message=Text("It does not answer.")))


def index(folder: Path, embedder: type[HashedWords] = HashedWords) -> ReferenceIndex:
    return ReferenceIndex(lambda: SqliteMemories(folder / "memory.db"), embedder, "w")


async def test_the_nearest_passages_are_found_the_best_first_in_both_languages(tmp_path: Path) -> None:
    """R1.62: by vectors, exactly, as many as are asked for."""
    here = (OTHER, CRANE, WIND)
    found = await index(tmp_path).search(here, ["A crane lifts a beam", "風の強い日の足場"], 5)
    assert [p.score for p in found.passages] == sorted((p.score for p in found.passages), reverse=True)
    assert {p.source for p in found.passages} == {"a.md:1", "a.md:9"}
    assert found.by == HashedWords().name
    one = await index(tmp_path).search(here, ["A crane lifts a beam"], 1)
    assert [p.source for p in one.passages] == ["a.md:1"]


async def test_without_vectors_the_words_are_searched(tmp_path: Path) -> None:
    """R1.62, C1.11: a service that is away takes nothing away but its vectors."""
    found = await index(tmp_path, Silent).search((OTHER, CRANE), ["crane beam"], 5)
    assert (found.by, [p.source for p in found.passages]) == (BY_WORDS, ["a.md:1"])


async def test_passages_that_are_gone_are_not_found(tmp_path: Path) -> None:
    """R1.62."""
    await index(tmp_path).search((CRANE, OTHER), ["crane"], 5)
    moved = CRANE.model_copy(update={"text": "Cranes are let by the day."})
    found = await index(tmp_path).search((moved, OTHER), ["The crane lifts the beam over the yard"], 5)
    assert all(p.text != CRANE.text for p in found.passages)
