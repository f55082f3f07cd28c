"""Looking for items that are to be worked: one call a repository while nothing is new."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, FoundItem
from daiku.domain.items.item import ItemKey, ItemKind
from daiku.texts.text import text
from daiku.work.answers import moment
from daiku.work.github.calls import PAGE, Calls, word
from daiku.work.github.label_cache import LabelCache, Labelled
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

    def __init__(self, calls_of: Callable[[str], Calls], label: str, bot: str, cache: LabelCache) -> None:
        self._calls_of = calls_of
        self._label = label
        self._bot = bot
        self._cache = cache
        self._seen: dict[str, _Seen] = {}

    async def find(self, repositories: tuple[str, ...]) -> tuple[FoundItem, ...] | ForgeRefusal:
        """Return the items of all repositories, oldest label first. One that refuses is skipped with a line in the log;
        return a refusal if every one refused."""
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
        cached = self._cache.load(repository)
        judged: dict[int, _Judged] = {}
        for issue in (*page.rows, *rest):
            if not self._is_meant(issue):
                continue
            old = known.get(issue.number)
            if old is None or old.updated != issue.updated_at:
                verdict = await self._judge(calls, believed, issue, cached.get(issue.number))
                if isinstance(verdict, ForgeRefusal):
                    self._cache.save(repository, {**cached, **_as_labelled(judged)})
                    return verdict  # the rest is asked at the next look
                old = _Judged(issue.updated_at, verdict)
            judged[issue.number] = old
        self._cache.save(repository, _as_labelled(judged))
        self._seen[repository] = now = _Seen(page.etag, tuple(judged.items()))
        return now.found()

    def _query(self, calls: Calls) -> str:
        """Return the query of the first page, newest change first: while that page is unchanged, so are the others. A label
        with a comma cannot be queried: then all open items are listed."""
        path = f"{calls.root}/issues?state=open&sort=updated&direction=desc&per_page={PAGE}"
        if "," not in self._label:
            path += f"&labels={word(self._label)}"
        return path if not self._bot else f"{path}&assignee={word(self._bot)}"

    def _is_meant(self, issue: Issue) -> bool:
        assigned = not self._bot or issue.is_assigned_to(self._bot)
        return issue.state == "open" and assigned and issue.has_label(self._label)

    async def _judge(
        self, calls: Calls, believed: Believed, issue: Issue, labelled: Labelled | None
    ) -> FoundItem | ForgeRefusal:
        """Return the item, with a reason if the author of its label may not order work. `labelled`: its cached label."""
        if labelled is not None and labelled.updated == issue.updated_at:
            return _as_found(calls, issue, labelled.labelled_at)
        labelling = await last_labelling(calls, str(issue.number), self._label)
        if isinstance(labelling, ForgeRefusal):
            return labelling
        actor = labelling.actor if labelling is not None else None
        writes = await believed.writes(actor)
        if isinstance(writes, ForgeRefusal):
            return writes
        found = _as_found(calls, issue, labelling.time if labelling is not None else "")
        if writes:
            return found
        why = text("github.untrusted")
        logger.warning("%s: %s", found.key, why)
        return found.model_copy(update={"refused": why})


def _as_found(calls: Calls, issue: Issue, labelled_at: str) -> FoundItem:
    kind: ItemKind = "request" if issue.pull_request is not None else "issue"
    key = ItemKey(source="github", kind=kind, repository=calls.repository, name=str(issue.number))
    return FoundItem(key=key, title=issue.title, url=issue.html_url, labelled_at=labelled_at)


def _as_labelled(judged: Mapping[int, _Judged]) -> dict[int, Labelled]:
    """Return the accepted labels for the cache. Refused ones are judged again by the next start."""
    return {
        number: Labelled(updated=each.updated, labelled_at=each.found.labelled_at)
        for number, each in judged.items()
        if not each.found.refused
    }
