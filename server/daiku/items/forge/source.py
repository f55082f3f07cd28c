"""A forge as a source of items: the shared part of GitHub and GitLab, with the application of intents."""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.item import (
    ForgeIntent,
    ItemKey,
    ItemState,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    SetState,
    ShowProgress,
    SourceName,
)
from daiku.items.forge.calls import ApiAccess, RepositoryCalls, Sleep
from daiku.items.forge.finding import Finder, LabelCache, Lifetimes
from daiku.items.forge.news import read_item, read_news
from daiku.items.forge.repository import Account, ForgeRepository
from daiku.items.forge.shapes import Comment, ForgeItem, Project, User
from daiku.items.forge.wire import Wire
from daiku.items.labels import get_label, list_own_labels
from daiku.items.rules.harmless import PROGRESS, build_mark
from daiku.items.source import Check, Strip, build_refusal, no_check
from daiku.settings.config import WorkLabels
from daiku.texts.text import text

MAX_TEXT = 65_000
"""Maximum characters of a comment. GitHub accepts 65,536, including the mark."""
ApplyResult: TypeAlias = Outcome | ForgeRefusal


@dataclass(frozen=True, slots=True)
class Writer:
    """Applies intents about one item."""

    repository: ForgeRepository
    key: ItemKey

    async def apply(self, operation: str, intent: ForgeIntent, again: bool) -> ApplyResult:
        """Apply `intent`. `again`: it was begun before with an unknown outcome."""
        mark = build_mark(str(self.key), operation)
        match intent:
            case SetState():
                result = await self._set_state(intent.state)
            case PostComment():
                result = await self._post_once(self._with_mark(intent.text, mark), mark, again)
            case ShowProgress():
                result = await self._show_progress(intent.text)
            case OpenRequest():
                result = await self._open(intent, mark, again)
            case MarkReady():
                result = await self._mark_ready(intent.branch)
        return await self._explain(result)

    def _with_mark(self, words: str, mark: str) -> str:
        return f"{self.repository.clean(words)[:MAX_TEXT]}\n\n{mark}"

    async def _set_state(self, state: ItemState) -> ApplyResult:
        labels = self.repository.account.labels
        label = get_label(labels, state)
        was_set = await self.repository.set_label(self.key, label, list_own_labels(labels))
        return was_set if isinstance(was_set, ForgeRefusal) else Outcome(reference=label, found=was_set)

    async def _find_own_comment(self, mark: str) -> Comment | ForgeRefusal | None:
        """Return Daiku's comment with `mark`, which others may have copied.

        A progress comment starts with its mark.
        """
        path, newest = self.repository.get_comments_path(self.key), self.repository.newest_first
        async for page in self.repository.calls.get_pages(Comment, path, newest):
            if isinstance(page, ForgeRefusal):
                return page
            for row in page.rows:
                body = row.body or ""
                has_mark = body.startswith(mark) if mark == PROGRESS else mark in body
                if has_mark and not row.system and self.repository.me.is_same(row.author):
                    return row
        return None

    async def _post_once(self, body: str, mark: str, again: bool) -> ApplyResult:
        if again:
            own = await self._find_own_comment(mark)
            if own is not None:
                return own if isinstance(own, ForgeRefusal) else Outcome(reference=str(own.id), found=True)
        return await self._post(body)

    async def _show_progress(self, words: str) -> ApplyResult:
        body = f"{PROGRESS}\n{self.repository.clean(words)[:MAX_TEXT]}"
        own = await self._find_own_comment(PROGRESS)
        if isinstance(own, ForgeRefusal):
            return own
        if own is None:
            return await self._post(body)
        if (own.body or "").strip() == body.strip():
            return Outcome(reference=str(own.id), found=True)
        changed = await self.repository.change_comment(self.key, own, body)
        return changed if isinstance(changed, ForgeRefusal) else Outcome(reference=str(changed.id))

    async def _post(self, body: str) -> ApplyResult:
        path = self.repository.get_comments_path(self.key)
        posted = await self.repository.calls.change(Comment, "POST", path, {"body": body})
        return posted if isinstance(posted, ForgeRefusal) else Outcome(reference=str(posted.id))

    async def _find_request(self, branch: str, mark: str) -> ForgeItem | ForgeRefusal | None:
        """Return the open request from `branch`, else Daiku's with `mark` in any state."""
        rows = await self.repository.list_requests(branch)
        if isinstance(rows, ForgeRefusal):
            return rows
        rows = tuple(row for row in rows if row.source_branch == branch)
        open_request = next((row for row in rows if row.is_open), None)
        me = self.repository.me
        marked = (row for row in rows if me.is_same(row.author) and mark in (row.body or ""))
        return open_request or next(marked, None)

    async def _open(self, intent: OpenRequest, mark: str, again: bool) -> ApplyResult:
        body = self._with_mark(intent.text, mark)
        existing = await self._find_request(intent.branch, mark) if again else None
        created: ForgeItem | ForgeRefusal | None = None
        for draft in self.repository.drafts:
            if existing is not None:
                break
            created = await self.repository.open_request(intent, body, draft)
            if not isinstance(created, ForgeRefusal) or created.kind not in ("bad", "exists"):
                break
            # A permanent refusal: the request exists already, or the repository has no drafts.
            existing = await self._find_request(intent.branch, mark)
        if existing is not None:
            return (
                existing
                if isinstance(existing, ForgeRefusal)
                else Outcome(reference=existing.url, found=True)
            )
        assert created is not None, "a repository opens requests as drafts or not"
        return created if isinstance(created, ForgeRefusal) else Outcome(reference=created.url)

    async def _mark_ready(self, branch: str) -> ApplyResult:
        if self.key.kind == "request":
            request = await self.repository.item(self.key)
        else:
            request = await self._find_request(branch, "")
        if request is None:
            return build_refusal("gone", text("forge.no_request", branch=branch))
        if isinstance(request, ForgeRefusal):
            return request
        if not request.is_open:
            return build_refusal("closed", text("forge.closed", item=request.url))
        if not self.repository.is_draft(request):
            return Outcome(reference=request.url, found=True)
        return await self.repository.mark_ready(request) or Outcome(reference=request.url)

    async def _explain(self, result: ApplyResult) -> ApplyResult:
        """Return the real reason of a refusal, as forges answer 403 or 404 in many cases."""
        if isinstance(result, Outcome) or result.kind not in ("gone", "forbidden"):
            return result
        item = await self.repository.item(self.key)
        if isinstance(item, ForgeRefusal):
            missing = build_refusal("gone", text("forge.gone", item=str(self.key)))
            return missing if result.kind == item.kind == "gone" else result
        if result.kind == "gone":
            return result
        project = await self.repository.calls.get(Project, "")
        if isinstance(project, Project) and project.archived:
            return build_refusal("archived", text("forge.archived", name=self.key.repository))
        if item.moved_to_id is not None:
            return build_refusal("moved", text("forge.moved", item=str(self.key)))
        if item.locked or item.discussion_locked:
            return build_refusal("locked", text("forge.locked", item=str(self.key)))
        return result


class ForgeSource(ABC):
    """The labeled issues and requests of the repositories in the settings."""

    source: ClassVar[SourceName]
    lifetimes: ClassVar[Lifetimes]
    names: ClassVar[re.Pattern[str]]
    """Pattern of a repository's name."""

    def __init__(
        self,
        wire: Wire,
        repositories: tuple[str, ...],
        bot: str,
        labels: WorkLabels,
        strip: Strip,
        *,
        cache: Path | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._wire = wire
        self._repositories = tuple(dict.fromkeys(repositories))
        self._sleep = sleep
        self._me: User | None = None
        self._account = Account(bot, labels, strip, self._find_me)
        cached = LabelCache(cache, labels.todo)
        self._finder = Finder(self._repository, cached, self.lifetimes, clock)

    @property
    def name(self) -> SourceName:
        return self.source

    def takes(self, key: ItemKey) -> bool:
        return key.source == self.name

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        return await self._finder.find(self._repositories)

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        repository = await self._open_for(key)
        return repository if isinstance(repository, ForgeRefusal) else await read_item(repository, key)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        repository = await self._open_for(key)
        return (
            repository
            if isinstance(repository, ForgeRefusal)
            else await read_news(repository, key, after, head)
        )

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        repository = await self._open_for(key, check)
        if isinstance(repository, ForgeRefusal):
            return repository
        return await Writer(repository, key).apply(operation, intent, again)

    async def aclose(self) -> None:
        await self._wire.aclose()

    @abstractmethod
    def api_access(self, repository: str) -> ApiAccess:
        """Return how requests about `repository` are made."""

    @abstractmethod
    def open_repository(self, calls: RepositoryCalls) -> ForgeRepository: ...

    @abstractmethod
    async def ask_who(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        """Return the token's account."""

    def _repository(self, name: str, check: Check = no_check) -> ForgeRepository | ForgeRefusal:
        if self.names.fullmatch(name) is None:
            return build_refusal("bad", text("forge.no_name", name=name))
        return self.open_repository(RepositoryCalls(self.api_access(name), self._sleep, check))

    async def _open_for(self, key: ItemKey, check: Check = no_check) -> ForgeRepository | ForgeRefusal:
        """Return the item's repository, which must be in the settings, with Daiku's account there."""
        if key.repository.casefold() not in {name.casefold() for name in self._repositories}:
            return build_refusal("forbidden", text("forge.not_named", name=key.repository))
        repository = self._repository(key.repository, check)
        if isinstance(repository, ForgeRefusal):
            return repository
        return await repository.identify() or repository

    async def _find_me(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        if self._me is None:
            me = await self.ask_who(calls)
            if isinstance(me, ForgeRefusal):
                return me
            self._me = me
        return self._me
