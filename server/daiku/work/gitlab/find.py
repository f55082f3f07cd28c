"""Looking for items on GitLab: open, labelled by somebody who is believed, assigned where that is asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from daiku.dataclass import dataclass
from daiku.domain.items.forge import PASSING, ForgeRefusal, FoundItem
from daiku.domain.items.item import ItemKey, ItemKind
from daiku.texts.text import NO_TEXT, text
from daiku.work.answers import moment
from daiku.work.gitlab.calls import PAGE, Calls
from daiku.work.gitlab.people import Labelling, People
from daiku.work.gitlab.shapes import CountedLabel, Item

logger = logging.getLogger(__name__)
KNOWN_SECONDS, UNTRUSTED_SECONDS = 600.0, 120.0
"""How long who set a label is remembered while the item does not change; at the claim it is asked again. GitLab moves
an item's time at most once a minute, so that a label that was set anew is noticed a little later."""
_LISTS: dict[ItemKind, str] = {"issue": "/issues", "request": "/merge_requests"}


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found out about an item as it stood at `updated_at`."""

    updated_at: str
    until: float
    labelling: Labelling


class Finder:
    """Looks through projects, one after the other and all at a time."""

    def __init__(
        self,
        label: str,
        assignee: str,
        calls_for: Callable[[str], Calls],
        people_for: Callable[[Calls], Awaitable[People | ForgeRefusal]],
        clock: Callable[[], float],
    ) -> None:
        self._label = label
        self._assignee = assignee
        self._calls_for = calls_for
        self._people_for = people_for
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._told: dict[str, str] = {}
        self._without: set[str] = set()

    async def find(self, repositories: tuple[str, ...]) -> tuple[FoundItem, ...] | ForgeRefusal:
        """The items of all projects, oldest label first. A project that refuses keeps the others from nothing."""
        answers = await asyncio.gather(*map(self._in_project, repositories))
        refused = [each for each in answers if isinstance(each, ForgeRefusal)]
        for repository, answer in zip(repositories, answers, strict=True):
            self._tell(repository, answer)
        waits = next((each for each in refused if each.kind == "limited"), None)
        if waits is not None or (refused and len(refused) == len(answers)):
            return waits or refused[0]
        found = [item for each in answers if not isinstance(each, ForgeRefusal) for item in each]
        names = {str(item.key) for item in found}
        now = self._clock()
        self._known = {key: known for key, known in self._known.items() if key in names or known.until > now}
        return tuple(sorted(found, key=lambda item: (moment(item.labelled_at), str(item.key))))

    def _tell(self, repository: str, answer: tuple[FoundItem, ...] | ForgeRefusal) -> None:
        """One line for each new trouble of a project; what passes by itself is none."""
        why = str(answer.message) if isinstance(answer, ForgeRefusal) and answer.kind not in PASSING else ""
        if why and self._told.get(repository) != why:
            logger.warning("%s", text("gitlab.project_refused", name=repository, why=why))
        self._told[repository] = why

    async def _in_project(self, repository: str) -> tuple[FoundItem, ...] | ForgeRefusal:
        calls = self._calls_for(repository)
        # One call says whether there is anything: two lists would be two calls each time.
        counted = await calls.first(CountedLabel, "/labels", {"with_counts": "true", "search": self._label})
        if isinstance(counted, ForgeRefusal) and counted.kind in PASSING:
            return counted
        found: list[FoundItem] = []
        for kind, count in self._counts(repository, counted):
            items = await self._listed(calls, kind) if count != 0 else ()
            if isinstance(items, ForgeRefusal):
                return items
            found += items
        return tuple(found)

    def _counts(
        self, repository: str, counted: tuple[CountedLabel, ...] | ForgeRefusal
    ) -> tuple[tuple[ItemKind, int | None], ...]:
        """How many open items of each kind have the label; None where that is not known, and is looked up."""
        unknown: tuple[tuple[ItemKind, int | None], ...] = (("issue", None), ("request", None))
        if isinstance(counted, ForgeRefusal) or len(counted) >= PAGE:
            return unknown
        label = next((each for each in counted if each.name == self._label), None)
        if label is not None:
            return (("issue", label.open_issues_count), ("request", label.open_merge_requests_count))
        if counted or repository in self._without:
            return ()
        # No label is like ours at all: looked up once, in case that this GitLab shows labels in another way.
        self._without.add(repository)
        return unknown

    async def _listed(self, calls: Calls, kind: ItemKind) -> tuple[FoundItem, ...] | ForgeRefusal:
        query = {"labels": self._label, "state": "opened", "scope": "all", "order_by": "updated_at"}
        rows = await calls.every(Item, _LISTS[kind], query)
        if isinstance(rows, ForgeRefusal):
            return rows
        found: list[FoundItem] = []
        people: People | ForgeRefusal | None = None
        for item in rows:
            if item.state != "opened" or not self._is_for_us(item):
                continue
            key = ItemKey(source="gitlab", kind=kind, repository=calls.repository, name=str(item.iid))
            labelling = self._remembered(key, item)
            if labelling is None:
                people = people or await self._people_for(calls)
                labelling = (
                    people if isinstance(people, ForgeRefusal) else await self._labelling(people, key, item)
                )
            if isinstance(labelling, ForgeRefusal):
                return labelling
            reason = NO_TEXT if labelling.by is not None else text("gitlab.untrusted", label=self._label)
            found.append(
                FoundItem(
                    key=key, title=item.title, url=item.web_url, labelled_at=labelling.time, refused=reason
                )
            )
        return tuple(found)

    def _is_for_us(self, item: Item) -> bool:
        return self._label in item.labels and (not self._assignee or item.is_assigned_to(self._assignee))

    def _remembered(self, key: ItemKey, item: Item) -> Labelling | None:
        known = self._known.get(str(key))
        good = known and known.updated_at == item.updated_at and known.until > self._clock()
        return known.labelling if known and good else None

    async def _labelling(self, people: People, key: ItemKey, item: Item) -> Labelling | ForgeRefusal:
        labelling = await people.last_labelling(key, item, self._label)
        if isinstance(labelling, ForgeRefusal):
            return labelling
        if labelling.by is None:
            before = self._known.get(str(key))
            if before is None or before.labelling.time != labelling.time:
                logger.warning("%s: %s", key, text("gitlab.untrusted", label=self._label))
        good = KNOWN_SECONDS if labelling.by is not None else UNTRUSTED_SECONDS
        self._known[str(key)] = _Known(item.updated_at, self._clock() + good, labelling)
        return labelling
