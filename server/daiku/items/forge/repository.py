"""One repository of a forge during one call: what both forges do alike, and the hooks for what each does its own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.items.forge import FailedCheck, ForgeRefusal
from daiku.domain.items.intents import OpenRequest
from daiku.domain.items.item import ItemKey, SourceName
from daiku.items.answers import build_refusal, parse_time
from daiku.items.forge.calls import NOTHING, Calls, Query
from daiku.items.forge.shapes import Comment, Event, Item, Project, User
from daiku.items.rules.marks import without_marks
from daiku.items.source import Strip
from daiku.settings.config import WorkLabels
from daiku.texts.text import text

Checks: TypeAlias = tuple[str, tuple[FailedCheck, ...]]
"""The state of a commit's checks, as ItemNews names it, and those that failed."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who we are: `bot` is the login that items are assigned to (empty: anybody), `find_me` returns the account that the
    token belongs to. `strip` removes from a text what a person does not see."""

    bot: str
    labels: WorkLabels
    strip: Strip
    find_me: Callable[[Calls], Awaitable[User | ForgeRefusal]]


@dataclass(frozen=True, slots=True)
class Labelling:
    """When the label was set last, and whether by a person with write access."""

    time: str
    trusted: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """The labelled items of a repository, and a note for the next listing."""

    items: tuple[Item, ...]
    note: str = ""


class Repository(ABC):
    """Reads and changes one repository; who has write access is asked once a person."""

    source: ClassVar[SourceName]
    newest_first: ClassVar[Query] = NOTHING
    """The query that sorts comments by age, newest first."""
    drafts: ClassVar[tuple[bool, ...]] = (True,)
    """Whether a request is opened as a draft; a second value is tried if the first is refused."""

    def __init__(self, calls: Calls, account: Account) -> None:
        self.calls = calls
        self.account = account
        self.me = User(login="")
        self._writers: dict[str, bool] = {}

    async def identify(self) -> ForgeRefusal | None:
        """Find out who we are, as `me`."""
        me = await self.account.find_me(self.calls)
        if isinstance(me, ForgeRefusal):
            return me
        self.me = me
        return None

    def key_of(self, item: Item) -> ItemKey:
        return ItemKey(
            source=self.source, kind=item.kind, repository=self.calls.repository, name=str(item.number)
        )

    async def writes(self, user: User | None) -> bool | ForgeRefusal:
        """Return True if `user` is a person with write access now. A bot proves nothing, nor does a name alone."""
        if user is None or not user.login or user.is_bot:
            return False
        name = user.login.casefold()
        if name not in self._writers:
            writes = await self.can_push(user)
            if isinstance(writes, ForgeRefusal):
                if writes.kind != "gone":
                    return writes
                writes = False
            self._writers[name] = writes
        return self._writers[name]

    async def last_labelling(self, item: Item, label: str) -> Labelling | ForgeRefusal:
        """Return who set `label` last, as far as that counts as an order."""
        events = await self.calls.every(Event, self.events_path(item))
        if isinstance(events, ForgeRefusal):
            return events
        setting = [
            e for e in events if e.action in ("labeled", "add") and self.is_label(e.label or "", label)
        ]
        order = await self.find_order(item, sorted(setting, key=lambda event: parse_time(event.created_at)))
        if order is None or isinstance(order, ForgeRefusal):
            return order or Labelling("", trusted=False)
        user, time = order
        writes = await self.writes(user)
        return writes if isinstance(writes, ForgeRefusal) else Labelling(time, writes)

    def has_label(self, item: Item, *names: str) -> bool:
        return any(self.is_label(label, name) for label in item.labels for name in names)

    async def body_trusted(self, item: Item, comments: tuple[Comment, ...]) -> bool | ForgeRefusal:
        """Return True if the item's text is an instruction. Return a refusal if nobody trusted set the label."""
        label = self.account.labels.todo
        labelling = await self.last_labelling(item, label)
        if isinstance(labelling, ForgeRefusal):
            return labelling
        if not labelling.trusted:
            return build_refusal("untrusted", text("forge.untrusted", label=label))
        return await self.text_stood(item, labelling.time, comments)

    def is_own_request(self, _item: Item) -> bool:
        """Return True if the item is a request that we opened, which counts as ordered."""
        return False

    def clean(self, words: str) -> str:
        """Return a model's text so that it can do nothing on the forge and has none of our marks."""
        return without_marks(words)

    @abstractmethod
    def is_label(self, one: str, other: str) -> bool:
        """Return True if the forge takes both names for one label."""

    @abstractmethod
    async def list_items(self, note: str) -> Listed | ForgeRefusal | None:
        """List the open items with the label. `note` is that of the listing before; None if nothing changed since."""

    @abstractmethod
    async def item(self, key: ItemKey) -> Item | ForgeRefusal:
        """Read an item."""

    @abstractmethod
    async def can_push(self, user: User) -> bool | ForgeRefusal:
        """Ask the forge whether `user` is a person with write access."""

    @abstractmethod
    def events_path(self, item: Item) -> str: ...

    @abstractmethod
    async def find_order(
        self, item: Item, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return who ordered the item, and when, from the events that set its label, oldest first."""

    @abstractmethod
    async def text_stood(self, item: Item, since: str, comments: tuple[Comment, ...]) -> bool | ForgeRefusal:
        """Return True if nobody without write access changed the item's text `since` it was ordered."""

    @abstractmethod
    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        """Read the comments and reviews since the time `after` (empty: all)."""

    @abstractmethod
    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote the comment (C2.13)."""

    @abstractmethod
    async def edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        """Return those that somebody may have changed who is not their author. `fresh`: written since the claim."""

    @abstractmethod
    async def source_of(self, item: Item, key: ItemKey, project: Project) -> str | ForgeRefusal:
        """Return the repository that has the item's branch if that is another one; a refusal if we cannot push to it."""

    @abstractmethod
    def claimed_at(self, item: Item, comments: tuple[Comment, ...]) -> str:
        """Return the time from which on something about the item is news."""

    @abstractmethod
    async def request_of(self, key: ItemKey, head: str) -> Item | ForgeRefusal | None:
        """Find the request that we opened for an issue; `head` is its commit."""

    @abstractmethod
    async def checks(self, head: str, request: Item | None) -> Checks | ForgeRefusal:
        """Read how the checks of the commit `head` stand."""

    @abstractmethod
    def comments_path(self, key: ItemKey) -> str: ...

    @abstractmethod
    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal: ...

    @abstractmethod
    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        """Set `label` and remove the other labels of `ours`. Return True if it was so before."""

    @abstractmethod
    async def requests_from(self, branch: str) -> tuple[Item, ...] | ForgeRefusal:
        """List the requests from `branch` that may be ours, newest first."""

    @abstractmethod
    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> Item | ForgeRefusal: ...

    @abstractmethod
    def is_draft(self, request: Item) -> bool: ...

    @abstractmethod
    async def mark_ready(self, request: Item) -> ForgeRefusal | None:
        """Make a draft request ready for review."""
