"""A project of GitLab: its REST paths, and the meaning of its answers."""

from __future__ import annotations

import asyncio
import re
from itertools import takewhile
from typing import ClassVar

from daiku.domain.items.forge import PASSING, FailedCheck, ForgeRefusal
from daiku.domain.items.item import ItemKey, ItemKind, OpenRequest
from daiku.items.forge.calls import PAGE, Query
from daiku.items.forge.repository import Checks, ForgeRepository, ItemListing
from daiku.items.forge.shapes import Comment, Event, ForgeItem, Pipeline, Project, User
from daiku.items.rules.harmless import OURS, remove_marks
from daiku.items.source import Shape, build_refusal, parse_time
from daiku.texts.text import text

DEVELOPER = 30
"""The lowest access level that may push."""
LOG_CHARACTERS = 8_000
"""Characters of the end of a failed job's log."""
MAX_JOBS = 10
"""Maximum number of failed jobs that are read."""
_EDITED_SECONDS = 5.0
"""Seconds after its creation from which a change of a comment counts as an edit."""
_CHANGES = ("changed the description", "changed title", "marked the ", "changed the title")
"""Beginnings of GitLab's notes that a text was changed."""
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|section_(?:start|end):\d+:[\w.\[\]=-]*\r?|\r(?!\n)")
_QUICK_ACTION = re.compile(r"^([ \t]*)(?=/[^\W\d])", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft\s-\s)\s*", re.IGNORECASE)
TITLE = 255
"""Maximum characters of a title."""
DRAFT = "Draft: "
_STATUS = {
    "success": "passed",
    "manual": "passed",  # all automatic jobs are done
    "failed": "failed",
    "canceled": "pending",  # superseded, or stopped by a person: says nothing about the commit
    "skipped": "none",
}


class _Member(User):
    access_level: int = 0
    state: str = "active"


class _CountedLabel(Shape):
    """A label of a project. A count is None if GitLab does not state it."""

    name: str
    open_issues_count: int | None = None
    open_merge_requests_count: int | None = None


class _PipelineJob(Shape):
    id: int
    name: str = ""
    allow_failure: bool = False
    web_url: str | None = None


class GitLabRepository(ForgeRepository):
    """One project of GitLab."""

    source = "gitlab"
    newest_first: ClassVar[Query] = {"sort": "desc", "order_by": "created_at"}

    def is_label(self, one: str, other: str) -> bool:
        return one == other

    def clean(self, text: str) -> str:
        return escape_quick_actions(text)

    async def list_items(self, note: str) -> ItemListing | ForgeRefusal | None:
        """List the items by kind. One call counts them first, since two lists would be two calls each time."""
        label = self.account.labels.todo
        counted = await self.calls.first_page(
            _CountedLabel, "/labels", {"with_counts": "true", "search": label}
        )
        if isinstance(counted, ForgeRefusal) and counted.kind in PASSING:
            return counted
        issues: int | None = None
        requests: int | None = None
        if not isinstance(counted, ForgeRefusal) and len(counted) < PAGE:
            exact = next((found for found in counted if found.name == label), None)
            if exact is not None:
                issues, requests = exact.open_issues_count, exact.open_merge_requests_count
            elif counted or note:
                return ItemListing((), note)
            else:  # listed once, in case this GitLab returns labels differently
                note = "looked through"
        items: list[ForgeItem] = []
        query = {"labels": label, "state": "opened", "scope": "all", "order_by": "updated_at"}
        for path, count in (("/issues", issues), ("/merge_requests", requests)):
            rows = await self.calls.get_all(ForgeItem, path, query) if count != 0 else ()
            if isinstance(rows, ForgeRefusal):
                return rows
            items += rows
        return ItemListing(tuple(items), note)

    async def item(self, key: ItemKey) -> ForgeItem | ForgeRefusal:
        return await self.calls.get(ForgeItem, _build_path(key.kind, key.name))

    async def can_push(self, user: User) -> bool | ForgeRefusal:
        member = await self.calls.get(_Member, f"/members/all/{user.id}")
        if isinstance(member, ForgeRefusal):
            return member
        if member.state != "active" or member.access_level < DEVELOPER:
            return False
        account = await self.calls.get(User, f"//users/{user.id}")
        if isinstance(account, ForgeRefusal):
            # Without access to accounts, bots are recognized by name only.
            return True if account.kind in ("gone", "forbidden") else account
        return not account.bot

    def get_events_path(self, item: ForgeItem) -> str:
        return f"{_build_path(item.kind, item.number)}/resource_label_events"

    async def find_order(
        self, item: ForgeItem, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return the last event. Labels set at creation, also by a template, count as the author's.

        Daiku's bot sets the label again when it gives an item back, which is no new order.
        """
        if refusal := await self.identify():
            return refusal
        others = [e for e in events if not (self.me.bot and self.me.is_same(e.user))]
        return (others[-1].user, others[-1].created_at) if others else (item.author, item.created_at)

    async def is_text_unchanged(
        self, item: ForgeItem, since: str, comments: tuple[Comment, ...]
    ) -> bool | ForgeRefusal:
        for note in comments:
            changed = note.system and (note.body or "").startswith(_CHANGES)
            if changed and parse_time(note.time) >= parse_time(since):
                author_can_write = await self.can_write(note.author)
                if author_can_write is not True:
                    return author_can_write
        return True

    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        comments_found: list[Comment] = []
        async for page in self.calls.get_pages(Comment, self.get_comments_path(key), self.newest_first):
            if isinstance(page, ForgeRefusal):
                return page
            new = [*takewhile(lambda row: not after or parse_time(row.time) > parse_time(after), page.rows)]
            comments_found += new
            if len(new) < len(page.rows):
                break
        return tuple(reversed(comments_found))

    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote it: the account may also be the user's own."""
        return self.me.is_same(comment.author) and OURS in (comment.body or "")

    async def find_edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        if not fresh:
            return frozenset()
        return frozenset(
            row
            for row in comments
            if (parse_time(row.updated_at) - parse_time(row.time)).total_seconds() > _EDITED_SECONDS
        )

    async def find_head_repository(
        self, item: ForgeItem, key: ItemKey, project: Project
    ) -> str | ForgeRefusal:
        may_push = await self._may_push(project, "")
        if isinstance(may_push, ForgeRefusal):
            return may_push
        if key.kind != "request" or item.source_project_id == project.id:
            return "" if may_push else build_refusal("forbidden", text("forge.no_push", name=key.repository))
        if item.source_project_id is None:
            return build_refusal("gone", text("forge.no_source", item=str(key)))
        source = await self.calls.get(Project, f"//projects/{item.source_project_id}")
        if isinstance(source, ForgeRefusal):
            return source
        if source.archived:
            return build_refusal("archived", text("forge.archived", name=source.full_name))
        may_push_source = await self._may_push(source, f"//projects/{source.id}")
        if isinstance(may_push_source, ForgeRefusal):
            return may_push_source
        if not (may_push_source or (item.allow_collaboration and may_push)):
            return build_refusal("forbidden", text("forge.no_push", name=source.full_name))
        return source.full_name

    def claimed_at(self, item: ForgeItem, comments: tuple[Comment, ...]) -> str:
        """Return the newest time of the item and its comments; GitLab updates an item's time once a minute."""
        return max((item.updated_at, *(row.time for row in comments)), key=parse_time)

    async def find_own_request(self, key: ItemKey, head: str) -> ForgeItem | ForgeRefusal | None:
        """Find the request that contains the commit `head`, with its pipeline."""
        rows = await self.calls.first_page(ForgeItem, f"/repository/commits/{head}/merge_requests")
        if isinstance(rows, ForgeRefusal):
            return None if rows.kind == "gone" else rows
        ours = [row for row in rows if self.me.is_same(row.author)]
        if not ours:
            return None
        newest = max(ours, key=lambda row: (row.is_open, row.number))
        return await self.calls.get(ForgeItem, _build_path("request", newest.number))

    async def checks(self, head: str, request: ForgeItem | None) -> Checks | ForgeRefusal:
        pipeline = await self._read_pipeline(head, request)
        if pipeline is None or isinstance(pipeline, ForgeRefusal):
            return pipeline or ("none", ())
        status = _STATUS.get(pipeline.status, "pending")
        if status != "failed":
            return status, ()
        jobs = await self.calls.first_page(
            _PipelineJob, f"/pipelines/{pipeline.id}/jobs", {"scope[]": "failed"}
        )
        if isinstance(jobs, ForgeRefusal):
            return jobs
        red = [job for job in jobs if not job.allow_failure][:MAX_JOBS]
        return status, tuple(await asyncio.gather(*map(self._read_failed_job, red)))

    def get_comments_path(self, key: ItemKey) -> str:
        return f"{_build_path(key.kind, key.name)}/notes"

    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal:
        path = f"{self.get_comments_path(key)}/{comment.id}"
        return await self.calls.change(Comment, "PUT", path, {"body": body})

    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        item = await self.item(key)
        if isinstance(item, ForgeRefusal):
            return item
        current = [name for name in ours if name in item.labels]
        if current == [label]:
            return True
        # Not the complete list: labels that others set meanwhile would be lost.
        change = {"add_labels": label, "remove_labels": ",".join(name for name in current if name != label)}
        data = {name: value for name, value in change.items() if value}
        result = await self.calls.change(ForgeItem, "PUT", _build_path(key.kind, key.name), data)
        return result if isinstance(result, ForgeRefusal) else False

    async def list_requests(self, branch: str) -> tuple[ForgeItem, ...] | ForgeRefusal:
        """List Daiku's requests only: GitLab refuses a second request from a branch."""
        rows = await self.calls.get_all(
            ForgeItem, "/merge_requests", {"source_branch": branch, "state": "all"}
        )
        if isinstance(rows, ForgeRefusal):
            return rows
        return tuple(row for row in rows if self.me.is_same(row.author))

    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> ForgeItem | ForgeRefusal:
        data = {
            "source_branch": intent.branch,
            "target_branch": intent.base,
            "title": as_draft(intent.title, intent.branch),
            "description": body,
        }
        return await self.calls.change(ForgeItem, "POST", "/merge_requests", data)

    def is_draft(self, request: ForgeItem) -> bool:
        return is_draft(request.title)

    async def mark_ready(self, request: ForgeItem) -> ForgeRefusal | None:
        title = remove_draft(request.title) or request.source_branch
        result = await self.calls.change(
            ForgeItem, "PUT", _build_path("request", request.number), {"title": title}
        )
        return result if isinstance(result, ForgeRefusal) else None

    async def _may_push(self, project: Project, place: str) -> bool | ForgeRefusal:
        """Return True if Daiku may push to `project`, which is at `place`.

        Administrators are not members. If GitLab does not state the permissions, git finds out when it
        pushes.
        """
        member = await self.calls.get(_Member, f"{place}/members/all/{self.me.id}")
        if not isinstance(member, ForgeRefusal):
            return member.access_level >= DEVELOPER
        if member.kind != "gone":
            return member
        return self.me.is_admin or project.permissions is None or project.permissions.level >= DEVELOPER

    async def _read_pipeline(self, head: str, request: ForgeItem | None) -> Pipeline | ForgeRefusal | None:
        """Return the pipeline of `head`: that of the request, which may have run on the merge result."""
        if request is not None and request.sha == head and request.head_pipeline is not None:
            return request.head_pipeline
        query = {"sha": head, "order_by": "id", "sort": "desc"}
        rows = await self.calls.first_page(Pipeline, "/pipelines", query)
        if isinstance(rows, ForgeRefusal):
            return None if rows.kind in ("gone", "forbidden") else rows  # a project without pipelines
        return rows[0] if rows else None

    async def _read_failed_job(self, job: _PipelineJob) -> FailedCheck:
        log = await self.calls.get_tail(f"/jobs/{job.id}/trace", LOG_CHARACTERS)
        output = str(log.message) if isinstance(log, ForgeRefusal) else _COLORS.sub("", log)
        return FailedCheck(name=job.name, text=output, url=job.web_url or "")


def _build_path(kind: ItemKind, number: str | int) -> str:
    return f"/{'merge_requests' if kind == 'request' else 'issues'}/{number}"


def escape_quick_actions(text: str) -> str:
    """Return `text` without Daiku's marks and without lines that GitLab runs as quick actions.

    A quick action would close, assign, or merge in Daiku's name. The text looks the same to readers.
    """
    lines: list[str] = []
    fence = ""
    for line in remove_marks(text).replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        # In code a backslash would be visible, so a blank is used.
        lines.append(_QUICK_ACTION.sub(r"\1 " if fence else r"\1\\", line))
        if match := _FENCE.match(line):
            fence = "" if fence and match[1].startswith(fence) else fence or match[1]
    return "\n".join(lines)


def is_draft(title: str) -> bool:
    """Return True if a request with `title` is a draft: GitLab marks it in the title only."""
    return _DRAFT.match(title) is not None


def as_draft(title: str, branch: str) -> str:
    """Return the title of a draft request from `branch`."""
    return (DRAFT + (remove_draft(title) or branch))[:TITLE].rstrip()


def remove_draft(title: str) -> str:
    """Return the title of a request that is ready."""
    while match := _DRAFT.match(title):
        title = title[match.end() :]
    return " ".join(title.split())[: TITLE - len(DRAFT)]
