"""The port of an item source (GitHub, GitLab, a folder), and parsers of a forge's API answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol, TypeVar

from pydantic import ConfigDict, JsonValue, SecretStr, ValidationError

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen
from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText, RefusalKind
from daiku.domain.items.item import ForgeIntent, ItemKey, Outcome, SourceName
from daiku.texts.text import Text


class Shape(Frozen):
    """The part of an answer that is read; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")


AnyShape = TypeVar("AnyShape", bound=Shape)

REFUSALS: Mapping[int, RefusalKind] = MappingProxyType(
    {
        301: "moved",
        302: "moved",
        307: "moved",
        308: "moved",
        401: "unauthorized",
        403: "forbidden",
        404: "gone",
        408: "unreachable",
        409: "exists",
        410: "gone",
        451: "gone",
    }
)
"""Meaning of each HTTP status below 500 on every forge."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def parse_one(shape: type[AnyShape], data: JsonValue) -> AnyShape | None:
    """Parse an answer as `shape`; None if it does not fit."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None


def parse_list(shape: type[AnyShape], data: JsonValue) -> tuple[AnyShape, ...] | None:
    """Parse an answer as a list of `shape`; None if it is no list or a row does not fit."""
    if not isinstance(data, list):
        return None
    rows = tuple(parse_one(shape, row) for row in data)
    valid = tuple(row for row in rows if row is not None)
    return valid if len(valid) == len(rows) else None


def build_refusal(kind: RefusalKind, message: Text) -> ForgeRefusal:
    """Build a refusal of this kind, with the message for the user."""
    return ForgeRefusal(kind=kind, message=message)


def is_forge_error(body: bytes) -> bool:
    """Return True if an error's body can be the forge's own (a JSON object, or empty), not a proxy's page."""
    if not body.strip():
        return True
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def parse_time(time: str | None) -> datetime:
    """Parse a forge's time (ISO 8601); return the earliest possible time if it is none."""
    try:
        parsed = datetime.fromisoformat(time or "")
    except ValueError:
        return _EARLIEST
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


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
