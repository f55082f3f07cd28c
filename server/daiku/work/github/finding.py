"""Looking for items that are to be worked: one call a repository while nothing is new."""

from __future__ import annotations

import logging
from collections.abc import Callable

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, FoundItem
from daiku.domain.items.item import ItemKey
from daiku.texts.text import NO_TEXT, text
from daiku.work.answers import moment
from daiku.work.github.calls import PAGE, Calls, word
from daiku.work.github.shapes import Issue
from daiku.work.github.trust import Believed, last_labelling

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Judged:
    """An item as it was judged when it was changed last."""

    updated: str
    found: FoundItem


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a repository said last."""

    etag: str = ""
    judged: tuple[tuple[int, _Judged], ...] = ()
    refused: str = ""

    def found(self) -> tuple[FoundItem, ...]:
        return tuple(each.found for _, each in self.judged)


class Finder:
    """Finds labelled items, open, and assigned to `bot` where one is set; keeps what it knows of each repository."""

    def __init__(self, calls_of: Callable[[str], Calls], label: str, bot: str) -> None:
        self._calls_of = calls_of
        self._label = label
        self._bot = bot
        self._seen: dict[str, _Seen] = {}

    async def find(self, repositories: tuple[str, ...]) -> tuple[FoundItem, ...] | ForgeRefusal:
        """The items of all of them, oldest label first. One that refuses is passed over with a line in the log; it is
        a refusal where every one did."""
        found: list[FoundItem] = []
        refusals: list[ForgeRefusal] = []
        for repository in repositories:
            looked = await self._look(repository)
            if isinstance(looked, ForgeRefusal):
                refusals.append(looked)
                self._note(repository, looked)
            else:
                found += looked
        if refusals and len(refusals) == len(repositories):
            return refusals[0]
        return tuple(sorted(found, key=lambda item: moment(item.labelled_at)))

    def _note(self, repository: str, refusal: ForgeRefusal) -> None:
        seen = self._seen.get(repository, _Seen())
        if seen.refused != refusal.kind:
            logger.warning("%s cannot be looked through: %s", repository, refusal.message)
        self._seen[repository] = _Seen(seen.etag, seen.judged, refusal.kind)

    async def _look(self, repository: str) -> tuple[FoundItem, ...] | ForgeRefusal:
        calls, seen = self._calls_of(repository), self._seen.get(repository, _Seen())
        page = await calls.changed(Issue, self._query(calls), seen.etag)
        if page is None:
            self._seen[repository] = _Seen(seen.etag, seen.judged)
            return seen.found()
        if isinstance(page, ForgeRefusal):
            return page
        rest = await calls.rest(Issue, page.more)
        if isinstance(rest, ForgeRefusal):
            return rest
        believed, known = Believed(calls), dict(seen.judged)
        judged: dict[int, _Judged] = {}
        for issue in (*page.rows, *rest):
            if not self._is_meant(issue):
                continue
            old = known.get(issue.number)
            if old is None or old.updated != issue.updated_at:
                verdict = await self._judge(calls, believed, issue)
                if isinstance(verdict, ForgeRefusal):
                    return verdict  # nothing is kept: all of it is asked again
                old = _Judged(issue.updated_at, verdict)
            judged[issue.number] = old
        self._seen[repository] = now = _Seen(page.etag, tuple(judged.items()))
        return now.found()

    def _query(self, calls: Calls) -> str:
        """The newest change first: while the first page is as it was, so is every other. A comma would make two labels
        of one: then all open items are looked through."""
        path = f"{calls.root}/issues?state=open&sort=updated&direction=desc&per_page={PAGE}"
        if "," not in self._label:
            path += f"&labels={word(self._label)}"
        return path if not self._bot else f"{path}&assignee={word(self._bot)}"

    def _is_meant(self, issue: Issue) -> bool:
        assigned = not self._bot or issue.is_assigned_to(self._bot)
        return issue.state == "open" and assigned and issue.has_label(self._label)

    async def _judge(self, calls: Calls, believed: Believed, issue: Issue) -> FoundItem | ForgeRefusal:
        request = issue.pull_request is not None
        key = ItemKey(
            source="github",
            kind="request" if request else "issue",
            repository=calls.repository,
            name=str(issue.number),
        )
        labelling = await last_labelling(calls, key.name, self._label)
        if isinstance(labelling, ForgeRefusal):
            return labelling
        actor = labelling.actor if labelling is not None else None
        writes = await believed.writes(actor)
        if isinstance(writes, ForgeRefusal):
            return writes
        why = text("github.untrusted") if not writes else NO_TEXT
        if why:
            logger.warning("%s: %s", key, why)
        time = labelling.time if labelling is not None else ""
        return FoundItem(key=key, title=issue.title, url=issue.html_url, labelled_at=time, refused=why)
