"""Embedder interface, and an embedder that hashes words and needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from daiku.dataclass import dataclass
from daiku.memory.rules.hashed import DIMENSION, NAME, UNRELATED, hash_vector
from daiku.memory.rules.vectors import Vector
from daiku.texts.text import Text, text


class Embedder(Protocol):
    """Converts texts to vectors. Vectors of different embedders or dimensions are never compared."""

    @property
    def name(self) -> str:
        """Name that is stored with each vector."""
        ...

    @property
    def unrelated(self) -> float:
        """Cosine below which two texts are considered unrelated."""
        ...

    @property
    def describe(self) -> Text:
        """What it matches, as a sentence for the user."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text, all of one dimension. Raises LLMError."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HashedWords:
    """Embedder that hashes words and word pieces. It needs no model and matches words, not meanings."""

    name: str = f"{NAME}/{DIMENSION}"
    unrelated: float = UNRELATED

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [hash_vector(item) for item in texts]

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""
