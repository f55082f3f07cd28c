"""One repository of a forge during one call: shared behavior, and hooks for the differences of each forge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.items.forge import FailedCheck, ForgeRefusal
from daiku.domain.items.item import ItemKey, OpenRequest, SourceName
from daiku.items.forge.calls import NOTHING, Query, RepositoryCalls
from daiku.items.forge.shapes import Comment, Event, ForgeItem, Project, User
from daiku.items.rules.harmless import remove_marks
from daiku.items.source import Strip, build_refusal, parse_time
from daiku.settings.config import WorkLabels
from daiku.texts.text import text

Checks: TypeAlias = tuple[str, tuple[FailedCheck, ...]]
"""The state of a commit's checks, as in ItemNews, and the failed ones."""


@dataclass(frozen=True, slots=True)
class Account:
    """Daiku's account: `bot` is the assigned login (empty: any), `find_me` returns the token's account."""

    bot: str
    labels: WorkLabels
    strip: Strip
    find_me: Callable[[RepositoryCalls], Awaitable[User | ForgeRefusal]]


@dataclass(frozen=True, slots=True)
class Labelling:
    """The time when the label was last set, and whether by a person with write access."""

    time: str
    trusted: bool


@dataclass(frozen=True, slots=True)
class ItemListing:
    """The labeled items of a repository, and a note for the next listing."""

    items: tuple[ForgeItem, ...]
    note: str = ""


class ForgeRepository(ABC):
    """Reads and changes one repository. Write access is queried once per person."""

    source: ClassVar[SourceName]
    newest_first: ClassVar[Query] = NOTHING
    """The query parameters that sort comments by age, newest first."""
    drafts: ClassVar[tuple[bool, ...]] = (True,)
    """Whether a request is opened as a draft; a second value is tried if the first is refused."""

    def __init__(self, calls: RepositoryCalls, account: Account) -> None:
        self.calls = calls
        self.account = account
        self.me = User(login="")
        self._writers: dict[str, bool] = {}

    async def identify(self) -> ForgeRefusal | None:
        """Find out the token's account, as `me`."""
        me = await self.account.find_me(self.calls)
        if isinstance(me, ForgeRefusal):
            return me
        self.me = me
        return None

    def build_key(self, item: ForgeItem) -> ItemKey:
        return ItemKey(
            source=self.source, kind=item.kind, repository=self.calls.repository, name=str(item.number)
        )

    async def can_write(self, user: User | None) -> bool | ForgeRefusal:
        """Return True if `user` is a person with write access now. Bots and bare names do not count."""
        if user is None or not user.login or user.is_bot:
            return False
        name = user.login.casefold()
        if name not in self._writers:
            allowed = await self.can_push(user)
            if isinstance(allowed, ForgeRefusal):
                if allowed.kind != "gone":
                    return allowed
                allowed = False
            self._writers[name] = allowed
        return self._writers[name]

    async def find_last_labelling(self, item: ForgeItem, label: str) -> Labelling | ForgeRefusal:
        """Return when `label` was last set, and whether that counts as an order."""
        events = await self.calls.get_all(Event, self.get_events_path(item))
        if isinstance(events, ForgeRefusal):
            return events
        label_events = [
            e for e in events if e.action in ("labeled", "add") and self.is_label(e.label or "", label)
        ]
        order = await self.find_order(
            item, sorted(label_events, key=lambda event: parse_time(event.created_at))
        )
        if order is None or isinstance(order, ForgeRefusal):
            return order or Labelling("", trusted=False)
        user, time = order
        trusted = await self.can_write(user)
        return trusted if isinstance(trusted, ForgeRefusal) else Labelling(time, trusted)

    def has_label(self, item: ForgeItem, *names: str) -> bool:
        return any(self.is_label(label, name) for label in item.labels for name in names)

    async def is_body_trusted(self, item: ForgeItem, comments: tuple[Comment, ...]) -> bool | ForgeRefusal:
        """Return True if the item's text is an instruction. Return a refusal if nobody trusted set the label."""
        label = self.account.labels.todo
        labelling = await self.find_last_labelling(item, label)
        if isinstance(labelling, ForgeRefusal):
            return labelling
        if not labelling.trusted:
            return build_refusal("untrusted", text("forge.untrusted", label=label))
        return await self.is_text_unchanged(item, labelling.time, comments)

    def is_own_request(self, _item: ForgeItem) -> bool:
        """Return True if the item is a request that Daiku opened, which counts as ordered."""
        return False

    def clean(self, text: str) -> str:
        """Return a model's text without effects on the forge and without Daiku's marks."""
        return remove_marks(text)

    @abstractmethod
    def is_label(self, one: str, other: str) -> bool:
        """Return True if the forge treats both names as one label."""

    @abstractmethod
    async def list_items(self, note: str) -> ItemListing | ForgeRefusal | None:
        """List the open items with the label.

        `note` is from the previous listing; return None if nothing changed.
        """

    @abstractmethod
    async def item(self, key: ItemKey) -> ForgeItem | ForgeRefusal:
        """Read an item."""

    @abstractmethod
    async def can_push(self, user: User) -> bool | ForgeRefusal:
        """Ask the forge whether `user` is a person with write access."""

    @abstractmethod
    def get_events_path(self, item: ForgeItem) -> str: ...

    @abstractmethod
    async def find_order(
        self, item: ForgeItem, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return who ordered the item, and when, from the events that set its label, oldest first."""

    @abstractmethod
    async def is_text_unchanged(
        self, item: ForgeItem, since: str, comments: tuple[Comment, ...]
    ) -> bool | ForgeRefusal:
        """Return True if nobody without write access changed the item's text `since` it was ordered."""

    @abstractmethod
    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        """Read the comments and reviews since the time `after` (empty: all)."""

    @abstractmethod
    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote the comment (C2.13)."""

    @abstractmethod
    async def find_edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        """Return the comments that others than their authors may have edited.

        `fresh`: written since the claim.
        """

    @abstractmethod
    async def find_head_repository(
        self, item: ForgeItem, key: ItemKey, project: Project
    ) -> str | ForgeRefusal:
        """Return the other repository that has the item's branch, if any.

        Return a refusal if Daiku cannot push to it.
        """

    @abstractmethod
    def claimed_at(self, item: ForgeItem, comments: tuple[Comment, ...]) -> str:
        """Return the time after which a change of the item is news."""

    @abstractmethod
    async def find_own_request(self, key: ItemKey, head: str) -> ForgeItem | ForgeRefusal | None:
        """Find the request that Daiku opened for an issue; `head` is its commit."""

    @abstractmethod
    async def checks(self, head: str, request: ForgeItem | None) -> Checks | ForgeRefusal:
        """Return the state of the checks of commit `head`."""

    @abstractmethod
    def get_comments_path(self, key: ItemKey) -> str: ...

    @abstractmethod
    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal: ...

    @abstractmethod
    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        """Set `label` and remove the other labels of `ours`. Return True if nothing had to change."""

    @abstractmethod
    async def list_requests(self, branch: str) -> tuple[ForgeItem, ...] | ForgeRefusal:
        """List the requests from `branch` that may be Daiku's, newest first."""

    @abstractmethod
    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> ForgeItem | ForgeRefusal: ...

    @abstractmethod
    def is_draft(self, request: ForgeItem) -> bool: ...

    @abstractmethod
    async def mark_ready(self, request: ForgeItem) -> ForgeRefusal | None:
        """Make a draft request ready for review."""
