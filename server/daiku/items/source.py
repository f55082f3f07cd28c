"""The port of an item source (GitHub, GitLab, a folder): find, read, poll, apply."""

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
    """Address of a repository with its current HTTP credentials.

    `local`: a path on this machine, never pushed to.
    """

    url: str
    user: str = ""
    secret: SecretStr = SecretStr("")
    local: bool = False

    @property
    def is_plain_http(self) -> bool:
        """Whether it uses plain HTTP. Sources allow that only if their own configured address does."""
        return self.url.startswith("http://")


Check = Callable[[], object]
"""Raises DaikuError if the caller must not change anything any more."""


def no_check() -> None:
    """Accept: no other process can have taken over."""


class ItemSource(Protocol):
    """A source of items.

    Methods return a forge's refusals as values, and never repeat a change without a lookup.
    """

    @property
    def name(self) -> SourceName: ...

    def takes(self, key: ItemKey) -> bool:
        """Return True if the item belongs to this source."""
        ...

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        """Return the items to process, oldest label first.

        Makes at most one call per repository if nothing is new.
        """
        ...

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        """Return the item's current text: this is the claim, and the instructions from here on."""
        ...

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        """Return the changes since `after`, and the state of the checks of commit `head` (empty: none)."""
        ...

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        """Apply `intent`. `again`: it may have been applied before, so its traces are looked up first.

        `check` is called directly before each change, and may raise.
        """
        ...

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        """Return how git reaches the item's repository."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


NewSecret = Callable[[str], None]
"""Receives a secret that was created while the program runs, so that it is redacted."""

Strip = Callable[[str], tuple[str, bool]]
"""Removes text that a reader would not see; also returns whether there was any."""


def strip_nothing(markdown: str) -> tuple[str, bool]:
    """Return the text unchanged."""
    return markdown, False
