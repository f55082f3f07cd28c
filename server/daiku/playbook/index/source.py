"""What a search asks of a playbook, whether it is a value or in a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from daiku.core.playbook.ranking import Searched
from daiku.core.retrieval.vectors import Vector
from daiku.domain.playbook import Bullet, SearchQuery


class Embedded(NamedTuple):
    """The vectors of a question and of texts that were lacking."""

    question: Vector
    texts: Sequence[Vector]


class Source(Protocol):
    """A playbook that is looked through: first it is given the vectors that it lacks, then it is asked."""

    def lacking(self) -> Sequence[str]:
        """Texts that have no vector yet and are to get one now."""
        ...

    def take(self, made: Embedded | None) -> bool:
        """The vectors of what was lacking, None where none could be made. False: what is lacking is to be asked again,
        for the playbook has changed meanwhile."""
        ...

    def searched(self) -> Searched:
        """The texts of all bullets that are active."""
        ...

    def holds(self) -> bool:
        """Whether nothing has changed while it was looked through."""
        ...

    def hidden(self, query: SearchQuery, *, resting: bool) -> AbstractSet[int]:
        """The numbers of those that the query does not ask for: of other sections and, unless those that rest are
        wanted too, below its least confidence."""
        ...

    def bullets(self, numbers: Sequence[int]) -> Mapping[int, Bullet]:
        """The bullets of these numbers, as far as they are still there."""
        ...
