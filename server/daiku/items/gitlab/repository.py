"""A project of GitLab: its REST paths, and what its answers mean."""

from __future__ import annotations

import asyncio
import re
from itertools import takewhile
from typing import ClassVar

from daiku.domain.items.forge import PASSING, FailedCheck, ForgeRefusal
from daiku.domain.items.intents import OpenRequest
from daiku.domain.items.item import ItemKey, ItemKind
from daiku.items.answers import Shape, build_refusal, parse_time
from daiku.items.forge.calls import PAGE, Query
from daiku.items.forge.repository import Checks, Listed, Repository
from daiku.items.forge.shapes import Comment, Event, Item, Pipeline, Project, User
from daiku.items.rules.marks import OURS, without_marks
from daiku.texts.text import text

DEVELOPER = 30
"""The access level from which on somebody may push."""
LOG_CHARACTERS = 8_000
"""Characters of the end of a failed job's log."""
MAX_JOBS = 10
_EDITED_SECONDS = 5.0
"""A comment that was changed later than this after it was written was edited."""
_CHANGES = ("changed the description", "changed title", "marked the ", "changed the title")
"""How GitLab notes that a text was changed."""
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|section_(?:start|end):\d+:[\w.\[\]=-]*\r?|\r(?!\n)")
_QUICK_ACTION = re.compile(r"^([ \t]*)(?=/[^\W\d])", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft\s-\s)\s*", re.IGNORECASE)
TITLE = 255
"""Maximum characters of a title."""
DRAFT = "Draft: "
_STATUS = {
    "success": "passed",
    "manual": "passed",  # everything that runs by itself is done
    "failed": "failed",
    "canceled": "pending",  # superseded, or stopped by a person: it says nothing of the commit
    "skipped": "none",
}


class _Member(User):
    access_level: int = 0
    state: str = "active"


class _CountedLabel(Shape):
    """A label of a project. A count is None if GitLab does not say it."""

    name: str
    open_issues_count: int | None = None
    open_merge_requests_count: int | None = None


class _Job(Shape):
    id: int
    name: str = ""
    allow_failure: bool = False
    web_url: str | None = None


class GitLabRepository(Repository):
    """One project of GitLab."""

    source = "gitlab"
    newest_first: ClassVar[Query] = {"sort": "desc", "order_by": "created_at"}

    def is_label(self, one: str, other: str) -> bool:
        return one == other

    def clean(self, words: str) -> str:
        return harmless(words)

    async def list_items(self, note: str) -> Listed | ForgeRefusal | None:
        """List them by kind. One call says how many there are: two lists would be two calls each time."""
        label = self.account.labels.todo
        counted = await self.calls.first(_CountedLabel, "/labels", {"with_counts": "true", "search": label})
        if isinstance(counted, ForgeRefusal) and counted.kind in PASSING:
            return counted
        issues: int | None = None
        requests: int | None = None
        if not isinstance(counted, ForgeRefusal) and len(counted) < PAGE:
            exact = next((each for each in counted if each.name == label), None)
            if exact is not None:
                issues, requests = exact.open_issues_count, exact.open_merge_requests_count
            elif counted or note:
                return Listed((), note)
            else:  # looked through once, in case that this GitLab shows labels in another way
                note = "looked through"
        items: list[Item] = []
        query = {"labels": label, "state": "opened", "scope": "all", "order_by": "updated_at"}
        for path, count in (("/issues", issues), ("/merge_requests", requests)):
            rows = await self.calls.every(Item, path, query) if count != 0 else ()
            if isinstance(rows, ForgeRefusal):
                return rows
            items += rows
        return Listed(tuple(items), note)

    async def item(self, key: ItemKey) -> Item | ForgeRefusal:
        return await self.calls.get(Item, _path(key.kind, key.name))

    async def can_push(self, user: User) -> bool | ForgeRefusal:
        member = await self.calls.get(_Member, f"/members/all/{user.id}")
        if isinstance(member, ForgeRefusal):
            return member
        if member.state != "active" or member.access_level < DEVELOPER:
            return False
        account = await self.calls.get(User, f"//users/{user.id}")
        if isinstance(account, ForgeRefusal):
            # Who may not see accounts knows bots by their names alone.
            return True if account.kind in ("gone", "forbidden") else account
        return not account.bot

    def events_path(self, item: Item) -> str:
        return f"{_path(item.kind, item.number)}/resource_label_events"

    async def find_order(
        self, item: Item, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return the last event. Labels that an item has from its beginning, by a template too, are its author's. A bot
        of ours sets the label again if it gives an item back: that is no new order."""
        if wrong := await self.identify():
            return wrong
        theirs = [e for e in events if not (self.me.bot and self.me.is_same(e.user))]
        return (theirs[-1].user, theirs[-1].created_at) if theirs else (item.author, item.created_at)

    async def text_stood(self, item: Item, since: str, comments: tuple[Comment, ...]) -> bool | ForgeRefusal:
        for note in comments:
            changed = note.system and (note.body or "").startswith(_CHANGES)
            if changed and parse_time(note.time) >= parse_time(since):
                writes = await self.writes(note.author)
                if writes is not True:
                    return writes
        return True

    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        found: list[Comment] = []
        async for page in self.calls.pages(Comment, self.comments_path(key), self.newest_first):
            if isinstance(page, ForgeRefusal):
                return page
            new = [*takewhile(lambda row: not after or parse_time(row.time) > parse_time(after), page.rows)]
            found += new
            if len(new) < len(page.rows):
                break
        return tuple(reversed(found))

    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote it: the account may also be a person's own."""
        return self.me.is_same(comment.author) and OURS in (comment.body or "")

    async def edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        if not fresh:
            return frozenset()
        return frozenset(
            row
            for row in comments
            if (parse_time(row.updated_at) - parse_time(row.time)).total_seconds() > _EDITED_SECONDS
        )

    async def source_of(self, item: Item, key: ItemKey, project: Project) -> str | ForgeRefusal:
        may = await self._may_push(project, "")
        if isinstance(may, ForgeRefusal):
            return may
        if key.kind != "request" or item.source_project_id == project.id:
            return "" if may else build_refusal("forbidden", text("forge.no_push", name=key.repository))
        if item.source_project_id is None:
            return build_refusal("gone", text("forge.no_source", item=str(key)))
        source = await self.calls.get(Project, f"//projects/{item.source_project_id}")
        if isinstance(source, ForgeRefusal):
            return source
        if source.archived:
            return build_refusal("archived", text("forge.archived", name=source.full_name))
        there = await self._may_push(source, f"//projects/{source.id}")
        if isinstance(there, ForgeRefusal):
            return there
        if not (there or (item.allow_collaboration and may)):
            return build_refusal("forbidden", text("forge.no_push", name=source.full_name))
        return source.full_name

    def claimed_at(self, item: Item, comments: tuple[Comment, ...]) -> str:
        """GitLab moves the item's own time at most once a minute: a comment may be newer."""
        return max((item.updated_at, *(row.time for row in comments)), key=parse_time)

    async def request_of(self, key: ItemKey, head: str) -> Item | ForgeRefusal | None:
        """Find the request that holds the commit `head`, with its pipeline."""
        rows = await self.calls.first(Item, f"/repository/commits/{head}/merge_requests")
        if isinstance(rows, ForgeRefusal):
            return None if rows.kind == "gone" else rows
        ours = [row for row in rows if self.me.is_same(row.author)]
        if not ours:
            return None
        newest = max(ours, key=lambda row: (row.is_open, row.number))
        return await self.calls.get(Item, _path("request", newest.number))

    async def checks(self, head: str, request: Item | None) -> Checks | ForgeRefusal:
        pipeline = await self._pipeline(head, request)
        if pipeline is None or isinstance(pipeline, ForgeRefusal):
            return pipeline or ("none", ())
        status = _STATUS.get(pipeline.status, "pending")
        if status != "failed":
            return status, ()
        jobs = await self.calls.first(_Job, f"/pipelines/{pipeline.id}/jobs", {"scope[]": "failed"})
        if isinstance(jobs, ForgeRefusal):
            return jobs
        red = [job for job in jobs if not job.allow_failure][:MAX_JOBS]
        return status, tuple(await asyncio.gather(*map(self._failed, red)))

    def comments_path(self, key: ItemKey) -> str:
        return f"{_path(key.kind, key.name)}/notes"

    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal:
        path = f"{self.comments_path(key)}/{comment.id}"
        return await self.calls.change(Comment, "PUT", path, {"body": body})

    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        item = await self.item(key)
        if isinstance(item, ForgeRefusal):
            return item
        there = [name for name in ours if name in item.labels]
        if there == [label]:
            return True
        # Never the whole list: what others set meanwhile would be lost.
        change = {"add_labels": label, "remove_labels": ",".join(name for name in there if name != label)}
        data = {name: value for name, value in change.items() if value}
        done = await self.calls.change(Item, "PUT", _path(key.kind, key.name), data)
        return done if isinstance(done, ForgeRefusal) else False

    async def requests_from(self, branch: str) -> tuple[Item, ...] | ForgeRefusal:
        """List ours only: GitLab refuses a second request from a branch, and those of others are not ours."""
        rows = await self.calls.every(Item, "/merge_requests", {"source_branch": branch, "state": "all"})
        if isinstance(rows, ForgeRefusal):
            return rows
        return tuple(row for row in rows if self.me.is_same(row.author))

    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> Item | ForgeRefusal:
        data = {
            "source_branch": intent.branch,
            "target_branch": intent.base,
            "title": as_draft(intent.title, intent.branch),
            "description": body,
        }
        return await self.calls.change(Item, "POST", "/merge_requests", data)

    def is_draft(self, request: Item) -> bool:
        return is_draft(request.title)

    async def mark_ready(self, request: Item) -> ForgeRefusal | None:
        title = without_draft(request.title) or request.source_branch
        done = await self.calls.change(Item, "PUT", _path("request", request.number), {"title": title})
        return done if isinstance(done, ForgeRefusal) else None

    async def _may_push(self, project: Project, place: str) -> bool | ForgeRefusal:
        """Return True if we may push to `project`, which is at `place`. Administrators are members of nothing; if GitLab
        does not say what we may do, git finds out when it pushes."""
        member = await self.calls.get(_Member, f"{place}/members/all/{self.me.id}")
        if not isinstance(member, ForgeRefusal):
            return member.access_level >= DEVELOPER
        if member.kind != "gone":
            return member
        return self.me.is_admin or project.permissions is None or project.permissions.level >= DEVELOPER

    async def _pipeline(self, head: str, request: Item | None) -> Pipeline | ForgeRefusal | None:
        """Read the pipeline of `head`: that of the request, which may have run on the result of the merge."""
        if request is not None and request.sha == head and request.head_pipeline is not None:
            return request.head_pipeline
        query = {"sha": head, "order_by": "id", "sort": "desc"}
        rows = await self.calls.first(Pipeline, "/pipelines", query)
        if isinstance(rows, ForgeRefusal):
            return None if rows.kind in ("gone", "forbidden") else rows  # a project without pipelines
        return rows[0] if rows else None

    async def _failed(self, job: _Job) -> FailedCheck:
        log = await self.calls.tail(f"/jobs/{job.id}/trace", LOG_CHARACTERS)
        said = str(log.message) if isinstance(log, ForgeRefusal) else _COLORS.sub("", log)
        return FailedCheck(name=job.name, text=said, url=job.web_url or "")


def _path(kind: ItemKind, number: str | int) -> str:
    return f"/{'merge_requests' if kind == 'request' else 'issues'}/{number}"


def harmless(text: str) -> str:
    """Return `text` without our marks and without lines that begin as a quick action.

    With one GitLab would close, assign, or merge in our name. It looks the same to people."""
    lines: list[str] = []
    fence = ""
    for line in without_marks(text).replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        # In code a backslash would be seen, so a blank does it there.
        lines.append(_QUICK_ACTION.sub(r"\1 " if fence else r"\1\\", line))
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
    return "\n".join(lines)


def is_draft(title: str) -> bool:
    """Return True if a request with `title` is a draft: GitLab knows it by the title alone."""
    return _DRAFT.match(title) is not None


def as_draft(title: str, branch: str) -> str:
    """Return the title of a draft request from `branch`."""
    return (DRAFT + (without_draft(title) or branch))[:TITLE].rstrip()


def without_draft(title: str) -> str:
    """Return the title of a request that is ready."""
    while found := _DRAFT.match(title):
        title = title[found.end() :]
    return " ".join(title.split())[: TITLE - len(DRAFT)]
