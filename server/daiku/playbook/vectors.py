"""Vectors that a service makes for searches: waited for a while, and kept for the next search where they come late."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from daiku.core.retrieval.vectors import Vector
from daiku.dataclass import dataclass, field
from daiku.domain.errors import LLMError
from daiku.llm.embedder import Embedder

if TYPE_CHECKING:
    from concurrent.futures import Future

logger = logging.getLogger(__name__)

WAITED_SECONDS = 3.0
"""How long a search waits for a service: less than a run waits for its lessons, which are then found by words."""
LONGEST_SECONDS = 120.0
"""After so long what a service was asked is given up, and asked again by the next search."""
MOST_KEPT = 500
"""Texts whose vectors a service is asked for once, while this process lives."""


class _Asked(NamedTuple):
    """What a service was asked, in a thread that nobody waits for at the end of the program."""

    texts: Sequence[str]
    vectors: Future[list[Vector]]


@dataclass(slots=True)
class ServiceVectors:
    """The vectors of an embedder that is a service. One that was late is asked on, but not waited for until it has answered:
    a server that is down costs the first search some seconds and no later one."""

    embedder: Embedder
    _kept: dict[str, Vector] = field(default_factory=dict[str, Vector], init=False)
    _asked: _Asked | None = field(default=None, init=False)
    _late: bool = field(default=False, init=False)

    def of(self, texts: Sequence[str]) -> Mapping[str, Vector] | None:
        """The vectors of these texts; None where the service does not answer in time."""
        self._look(0.0)
        if missing := [each for each in dict.fromkeys(texts) if each not in self._kept]:
            if self._asked is None:
                self._asked = _Asked(missing, _asked(self.embedder, missing))
            self._look(0.0 if self._late else WAITED_SECONDS)
        if any(each not in self._kept for each in texts):
            return None
        found = {each: self._kept[each] for each in texts}
        self._kept = dict(list(self._kept.items())[-MOST_KEPT:])
        return found

    def _look(self, seconds: float) -> None:
        """Take in what the service was asked, as far as it comes within so many seconds."""
        if self._asked is None:
            return
        texts, vectors = self._asked
        with suppress(TimeoutError):
            vectors.exception(seconds)
        if not vectors.done():
            if not self._late:
                logger.warning("lessons are searched by words only: %s does not answer", self.embedder.name)
            self._late = True
            return
        self._asked = None
        try:
            self._kept |= zip(texts, vectors.result(), strict=True)
            self._late = False
        except TimeoutError:
            logger.warning("%s was asked for vectors and did not answer", self.embedder.name)
        except LLMError as wrong:
            logger.warning("lessons are searched by words only: %s", wrong.failure.message)


def _asked(embedder: Embedder, texts: Sequence[str]) -> Future[list[Vector]]:
    """The vectors of a service, asked in a thread of its own: a loop may run in this one."""
    from concurrent.futures import Future  # when used

    async def embedded() -> list[Vector]:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    def work() -> None:
        try:
            vectors.set_result(asyncio.run(embedded()))
        except Exception as wrong:  # noqa: BLE001  # the thread's boundary: whoever looks is told
            vectors.set_exception(wrong)

    vectors: Future[list[Vector]] = Future()
    Thread(target=work, name="daiku playbook", daemon=True).start()
    return vectors
