"""Carries out intents on a forge, each once: looked for first if it may have been done before."""

from __future__ import annotations

from typing import TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.intents import (
    ForgeIntent,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    SetState,
    ShowProgress,
)
from daiku.domain.items.item import ItemKey, ItemState
from daiku.items.answers import build_refusal
from daiku.items.forge.repository import Repository
from daiku.items.forge.shapes import Comment, Item, Project
from daiku.items.labels import label_of, our_labels
from daiku.items.rules.marks import PROGRESS, mark_of
from daiku.texts.text import text

MAX_TEXT = 65_000
"""Maximum characters of a comment. GitHub takes 65,536, with the mark."""
Done: TypeAlias = Outcome | ForgeRefusal


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out intents about one item."""

    repository: Repository
    key: ItemKey

    async def apply(self, operation: str, intent: ForgeIntent, again: bool) -> Done:
        """Carry out `intent`. `again`: it was begun before, and nobody knows what became of it."""
        mark = mark_of(str(self.key), operation)
        match intent:
            case SetState():
                done = await self._set_state(intent.state)
            case PostComment():
                done = await self._comment(self._marked(intent.text, mark), mark, again)
            case ShowProgress():
                done = await self._show_progress(intent.text)
            case OpenRequest():
                done = await self._open(intent, mark, again)
            case MarkReady():
                done = await self._mark_ready(intent.branch)
        return await self._explain(done)

    def _marked(self, words: str, mark: str) -> str:
        return f"{self.repository.clean(words)[:MAX_TEXT]}\n\n{mark}"

    async def _set_state(self, state: ItemState) -> Done:
        labels = self.repository.account.labels
        label = label_of(labels, state)
        found = await self.repository.set_label(self.key, label, our_labels(labels))
        return found if isinstance(found, ForgeRefusal) else Outcome(reference=label, found=found)

    async def _own_comment(self, mark: str) -> Comment | ForgeRefusal | None:
        """Find our comment with `mark`; others may have copied it. A progress comment begins with its mark."""
        path, newest = self.repository.comments_path(self.key), self.repository.newest_first
        async for page in self.repository.calls.pages(Comment, path, newest):
            if isinstance(page, ForgeRefusal):
                return page
            for row in page.rows:
                body = row.body or ""
                has_mark = body.startswith(mark) if mark == PROGRESS else mark in body
                if has_mark and not row.system and self.repository.me.is_same(row.author):
                    return row
        return None

    async def _comment(self, body: str, mark: str, again: bool) -> Done:
        if again:
            own = await self._own_comment(mark)
            if own is not None:
                return own if isinstance(own, ForgeRefusal) else Outcome(reference=str(own.id), found=True)
        return await self._post(body)

    async def _show_progress(self, words: str) -> Done:
        body = f"{PROGRESS}\n{self.repository.clean(words)[:MAX_TEXT]}"
        own = await self._own_comment(PROGRESS)
        if isinstance(own, ForgeRefusal):
            return own
        if own is None:
            return await self._post(body)
        if (own.body or "").strip() == body.strip():
            return Outcome(reference=str(own.id), found=True)
        changed = await self.repository.change_comment(self.key, own, body)
        return changed if isinstance(changed, ForgeRefusal) else Outcome(reference=str(changed.id))

    async def _post(self, body: str) -> Done:
        path = self.repository.comments_path(self.key)
        posted = await self.repository.calls.change(Comment, "POST", path, {"body": body})
        return posted if isinstance(posted, ForgeRefusal) else Outcome(reference=str(posted.id))

    async def _find_request(self, branch: str, mark: str) -> Item | ForgeRefusal | None:
        """Find the open request from `branch`, else ours with `mark`, whatever became of it."""
        rows = await self.repository.requests_from(branch)
        if isinstance(rows, ForgeRefusal):
            return rows
        rows = tuple(row for row in rows if row.source_branch == branch)
        opened = next((row for row in rows if row.is_open), None)
        me = self.repository.me
        marked = (row for row in rows if me.is_same(row.author) and mark in (row.body or ""))
        return opened or next(marked, None)

    async def _open(self, intent: OpenRequest, mark: str, again: bool) -> Done:
        body = self._marked(intent.text, mark)
        found = await self._find_request(intent.branch, mark) if again else None
        made: Item | ForgeRefusal | None = None
        for draft in self.repository.drafts:
            if found is not None:
                break
            made = await self.repository.open_request(intent, body, draft)
            if not isinstance(made, ForgeRefusal) or made.kind not in ("bad", "exists"):
                break
            # Refused for good, so nothing was made: it is there already, or the repository has no drafts.
            found = await self._find_request(intent.branch, mark)
        if found is not None:
            return found if isinstance(found, ForgeRefusal) else Outcome(reference=found.url, found=True)
        assert made is not None, "a repository opens requests as drafts or not"
        return made if isinstance(made, ForgeRefusal) else Outcome(reference=made.url)

    async def _mark_ready(self, branch: str) -> Done:
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

    async def _explain(self, done: Done) -> Done:
        """Return why a forge refused, which may answer 403 or 404 to many things."""
        if isinstance(done, Outcome) or done.kind not in ("gone", "forbidden"):
            return done
        item = await self.repository.item(self.key)
        if isinstance(item, ForgeRefusal):
            gone = build_refusal("gone", text("forge.gone", item=str(self.key)))
            return gone if done.kind == item.kind == "gone" else done
        if done.kind == "gone":
            return done
        project = await self.repository.calls.get(Project, "")
        if isinstance(project, Project) and project.archived:
            return build_refusal("archived", text("forge.archived", name=self.key.repository))
        if item.moved_to_id is not None:
            return build_refusal("moved", text("forge.moved", item=str(self.key)))
        if item.locked or item.discussion_locked:
            return build_refusal("locked", text("forge.locked", item=str(self.key)))
        return done
