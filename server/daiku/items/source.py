"""What the worker asks of a source of items (GitHub, GitLab, a folder): find, read, look, apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.intents import ForgeIntent, Outcome
from daiku.domain.items.item import ItemKey, SourceName


@dataclass(frozen=True, slots=True)
class CloneAccess:
    """Address of a repository, with the HTTP login as it is now. `local`: a path here, to which nothing is pushed."""

    url: str
    user: str = ""
    secret: SecretStr = SecretStr("")
    local: bool = False

    @property
    def in_the_clear(self) -> bool:
        """Over plain HTTP: a source gives this only where its own address, which a person set, is plain HTTP too."""
        return self.url.startswith("http://")


Check = Callable[[], object]
"""Raises DaikuError where whoever asks may not change anything any more."""


def unchecked() -> None:
    """Nobody else may have come before."""


class Source(Protocol):
    """A source of items. Methods return what a forge refuses, and repeat no change without looking."""

    @property
    def name(self) -> SourceName: ...

    def takes(self, key: ItemKey) -> bool:
        """Whether the item can be one of this source: it is read and worked by no other."""
        ...

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        """The items that are to be worked, oldest label first. At most one call a repository when nothing is new."""
        ...

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        """The item as it stands now: this is the claim, and what counts as an instruction from here on."""
        ...

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        """What changed since the time `after`, and how the checks of the commit `head` stand (empty: none asked)."""
        ...

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = unchecked
    ) -> Outcome | ForgeRefusal:
        """Carry out `intent`. `again`: it may have been carried out before, so its traces are looked for first.
        `check` is called directly before each change, and may raise."""
        ...

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        """How git reaches the item's repository."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


NewSecret = Callable[[str], None]
"""Told of a secret that was made while the program runs, so that it is never shown."""

Strip = Callable[[str], tuple[str, bool]]
"""A text without what a person would not have seen in it, and whether there was such."""


def nothing_hidden(markdown: str) -> tuple[str, bool]:
    """The text as it is."""
    return markdown, False
