"""What an embedder is, and the one that needs no model: texts as vectors from their words alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from daiku.dataclass import dataclass
from daiku.memory.rules.hashed import DIMENSION, NAME, UNRELATED, hashed_vector
from daiku.memory.rules.vectors import Vector
from daiku.texts.text import Text, text


class Embedder(Protocol):
    """Makes vectors from texts. Vectors of two embedders, or of two dimensions, are never compared."""

    @property
    def name(self) -> str:
        """Its name, which is kept with each vector."""
        ...

    @property
    def unrelated(self) -> float:
        """The cosine below which two texts have nothing in common."""
        ...

    @property
    def describe(self) -> Text:
        """What it matches, in a sentence for a person."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, all of one dimension. Raises LLMError."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HashedWords:
    """The embedder that needs no model and no download: it matches words and their pieces, not meanings."""

    name: str = f"{NAME}/{DIMENSION}"
    unrelated: float = UNRELATED

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [hashed_vector(each) for each in texts]

    async def aclose(self) -> None:
        """Nothing is open."""
