"""Who is believed on GitLab: people who may push now; who set the label, and who changed the text since."""

from __future__ import annotations

import re
from collections.abc import Iterable

from daiku.core.work.marks import OURS
from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemKey
from daiku.work.answers import moment
from daiku.work.gitlab.calls import Calls, path_of
from daiku.work.gitlab.shapes import Item, LabelEvent, Member, Note, User

DEVELOPER = 30
"""The access level from which on somebody may push."""
_BOT = re.compile(r"(?:project|group)_\d+_bot(?:_\w+)?|service_account_\w+", re.IGNORECASE)
_CHANGES = ("changed the description", "changed title", "marked the ", "changed the title")
"""How GitLab notes that a text was changed."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """Who set the label of an item, and when. `by` None: nobody who is believed."""

    by: User | None
    time: str


class People:
    """Answers for one look at a project; each person is asked for once."""

    def __init__(self, calls: Calls, me: User) -> None:
        self.me = me
        self._calls = calls
        self._levels: dict[int, int] = {}
        self._writers: dict[int, bool] = {}

    async def level(self, user: User) -> int | ForgeRefusal:
        """The access level of `user` as it is now, 0 for strangers."""
        if user.id not in self._levels:
            found = await self._calls.get(Member, f"/members/all/{user.id}")
            if isinstance(found, ForgeRefusal):
                if found.kind != "gone":
                    return found
                self._levels[user.id] = 0
            else:
                # Bots prove nothing whatever they may do; `writes` looks at that.
                self._levels[user.id] = found.access_level if found.state == "active" else 0
        return self._levels[user.id]

    async def writes(self, user: User | None) -> bool | ForgeRefusal:
        """Whether `user` is a person who may push now."""
        if user is None or user.bot or _BOT.fullmatch(user.username):
            return False
        if user.id not in self._writers:
            level = await self.level(user)
            if isinstance(level, ForgeRefusal):
                return level
            human = level >= DEVELOPER and await self._is_human(user)
            if isinstance(human, ForgeRefusal):
                return human
            self._writers[user.id] = human
        return self._writers[user.id]

    async def _is_human(self, user: User) -> bool | ForgeRefusal:
        found = await self._calls.get(User, f"//users/{user.id}")
        if isinstance(found, ForgeRefusal):
            # Who may not see accounts knows bots by their names alone.
            return True if found.kind in ("gone", "forbidden") else found
        return not found.bot

    def is_ours(self, note: Note) -> bool:
        """Whether we wrote this comment: the account may also be a person's own."""
        return note.author is not None and note.author.id == self.me.id and OURS in (note.body or "")

    async def last_labelling(self, key: ItemKey, item: Item, label: str) -> Labelling | ForgeRefusal:
        """Who set `label` last. Labels that an issue has from its beginning, by a template too, are its author's."""
        events = await self._calls.every(LabelEvent, f"{path_of(key)}/resource_label_events")
        if isinstance(events, ForgeRefusal):
            return events
        set_by = [
            event
            for event in sorted(events, key=lambda event: event.id)
            if event.action == "add" and event.label is not None and event.label.name == label
        ]
        # A bot of ours sets it again where it gives an item back: that is no new order.
        theirs = [each for each in set_by if not (each.user and each.user.id == self.me.id and self.me.bot)]
        user, time = (theirs[-1].user, theirs[-1].created_at) if theirs else (item.author, item.created_at)
        believed = await self.writes(user)
        if isinstance(believed, ForgeRefusal):
            return believed
        return Labelling(user if believed else None, time)

    async def stood_since(self, time: str, notes: Iterable[Note]) -> bool | ForgeRefusal:
        """Whether nobody who is not believed changed the item's text after `time`."""
        for note in notes:
            changed = note.system and (note.body or "").startswith(_CHANGES)
            if changed and moment(note.created_at) >= moment(time):
                believed = await self.writes(note.author)
                if believed is not True:
                    return believed
        return True
