"""Who is believed: people with write access now, asked of GitHub itself; a bot never is, nor a name alone."""

from __future__ import annotations

from daiku.dataclass import dataclass
from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.work.answers import moment
from daiku.work.github.calls import Calls, word
from daiku.work.github.shapes import Comment, Event, Issue, Nodes, Permission, Pull, Review, User

WRITING = frozenset({"admin", "maintain", "write"})
_EDITS = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Comment { lastEditedAt editor { login } } } }"
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Labelling:
    """The label was set last by `actor`, at `time`."""

    id: int
    actor: User | None
    time: str


class Believed:
    """Who has write access to one repository, asked at most once a person. For one call: access may be taken away."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: dict[str, bool] = {}

    async def writes(self, user: User | None) -> bool | ForgeRefusal:
        """Whether `user` is a person with write access now."""
        if user is None or not user.login or is_bot(user):
            return False
        name = user.login.casefold()
        if name not in self._known:
            path = f"{self._calls.root}/collaborators/{word(user.login)}/permission"
            found = await self._calls.get(Permission, path)
            if isinstance(found, ForgeRefusal):
                if found.kind != "gone":
                    return found
                found = Permission()
            bot = found.user is not None and is_bot(found.user)
            self._known[name] = not bot and found.permission in WRITING
        return self._known[name]


def is_bot(user: User) -> bool:
    """Whether it is a program; what it says proves nothing, whoever set it off."""
    return user.type != "User" or user.login.casefold().endswith("[bot]")


async def last_labelling(calls: Calls, number: str, label: str) -> Labelling | ForgeRefusal | None:
    """Who set `label` last, and when; a form for new issues sets it in the name of who opens one. None: nobody did."""
    events = await calls.pages(Event, f"{calls.root}/issues/{number}/events")
    if isinstance(events, ForgeRefusal):
        return events
    found: Labelling | None = None
    for event in events:
        named = event.label.name if event.label is not None else None
        if (
            event.event == "labeled"
            and (named or "").casefold() == label.casefold()
            and (found is None or moment(event.created_at) >= moment(found.time))
        ):
            found = Labelling(event.id, event.actor, event.created_at)
    return found


async def edited_by_others(
    calls: Calls, said: tuple[Comment | Review | Issue | Pull, ...], since: str = ""
) -> frozenset[str] | ForgeRefusal:
    """The node ids of those texts that somebody else than their author changed, or, with `since`, that anybody did
    from then on. What cannot be looked up counts as changed."""
    authors = {each.node_id: each.user for each in said}
    ids = [node for node in authors if node]
    changed = set(authors)
    for start in range(0, len(ids), _AT_ONCE):
        found = await calls.query(Nodes, _EDITS, ids=list(ids[start : start + _AT_ONCE]))
        if isinstance(found, ForgeRefusal):
            if found.kind in PASSING:
                return found
            continue
        for node in found.nodes:
            author = authors.get(node.id) if node is not None else None
            if node is None or node.id not in authors:
                continue
            if node.lastEditedAt is None:
                changed.discard(node.id)
            elif since:
                if moment(node.lastEditedAt) < moment(since):
                    changed.discard(node.id)
            elif author is not None and node.editor is not None and author.is_called(node.editor.login):
                changed.discard(node.id)
    return frozenset(changed)
