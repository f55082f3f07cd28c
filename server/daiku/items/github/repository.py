"""A repository of GitHub: its REST paths, its GraphQL queries, and the meaning of its answers."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from daiku.domain.items.forge import PASSING, FailedCheck, ForgeRefusal
from daiku.domain.items.item import REQUEST, ItemKey, OpenRequest
from daiku.items.forge.calls import RepositoryCalls
from daiku.items.forge.repository import Account, Checks, ForgeRepository, ItemListing
from daiku.items.forge.shapes import Anything, Comment, Event, ForgeItem, Label, Project, User
from daiku.items.github.app_auth import Tokens
from daiku.items.labels import is_same_label
from daiku.items.rules.harmless import OURS, build_mark
from daiku.items.source import AnyShape, Shape, build_refusal, parse_time
from daiku.texts.text import text

WRITING = frozenset({"admin", "maintain", "write"})
_RED = frozenset({"failure", "timed_out", "startup_failure"})
_OPEN = frozenset({"cancelled", "action_required", "stale"})
"""Conclusions that say nothing about the commit: superseded by a newer run, or waiting for a person."""
_RED_STATUS = frozenset({"failure", "error"})
_MAX_OUTPUT = 20_000
"""Maximum characters of a failed check's output."""
_NODES = 100
"""Maximum ids of one GraphQL query."""
_EDITS = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Comment { lastEditedAt editor { login } } } }"
_READY = (
    "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
)


class _NamedLabel(Shape):
    name: Label = ""


class _Permission(Shape):
    permission: str = ""
    user: User | None = None


class _CommitStatus(Shape):
    context: str = ""
    state: str
    description: str | None = None
    target_url: str | None = None


class _Output(Shape):
    title: str | None = None
    summary: str | None = None
    text: str | None = None


class _CheckRun(Shape):
    name: str = ""
    status: str
    conclusion: str | None = None
    html_url: str | None = None
    output: _Output | None = None


class _Editing(Shape):
    """The last edit of a text: who and when; neither if there was none."""

    id: str = ""
    lastEditedAt: str | None = None  # noqa: N815  # as GraphQL spells it
    editor: User | None = None


class _Nodes(Shape):
    nodes: tuple[_Editing | None, ...] = ()


class _Viewer(Shape):
    viewer: User


class _Reply(Shape):
    data: JsonValue = None
    errors: JsonValue = None


class GitHubRepository(ForgeRepository):
    """One repository of GitHub. `tokens` may know whether Daiku can push to it."""

    source = "github"
    drafts = (True, False)  # not every repository has drafts

    def __init__(self, calls: RepositoryCalls, account: Account, tokens: Tokens) -> None:
        super().__init__(calls, account)
        self._tokens = tokens

    def is_label(self, one: str, other: str) -> bool:
        return is_same_label(one, other)

    async def list_items(self, note: str) -> ItemListing | ForgeRefusal | None:
        """List the items, newest change first. While the first page's ETag is valid, so is the rest.

        A label with a comma cannot be queried: then all open items are listed.
        """
        label, bot = self.account.labels.todo, self.account.bot
        query = {"state": "open", "sort": "updated", "direction": "desc"}
        query |= {} if "," in label else {"labels": label}
        query |= {"assignee": bot} if bot else {}
        items: list[ForgeItem] = []
        etag = ""
        async for page in self.calls.get_pages(ForgeItem, "/issues", query, etag=note):
            if isinstance(page, ForgeRefusal):
                return page
            if page.unchanged:
                return None
            etag = etag if items else page.etag
            items += page.rows
        return ItemListing(tuple(items), etag)

    async def item(self, key: ItemKey) -> ForgeItem | ForgeRefusal:
        return await self.calls.get(
            ForgeItem, f"/{'pulls' if key.kind == 'request' else 'issues'}/{key.name}"
        )

    async def can_push(self, user: User) -> bool | ForgeRefusal:
        answer = await self.calls.get(_Permission, f"/collaborators/{_quote_part(user.login)}/permission")
        if isinstance(answer, ForgeRefusal):
            return answer
        return not (answer.user and answer.user.is_bot) and answer.permission in WRITING

    def get_events_path(self, item: ForgeItem) -> str:
        return f"/issues/{item.number}/events"

    async def find_order(
        self, item: ForgeItem, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return the last event. A template for new issues sets the label in their authors' names."""
        return (events[-1].user, events[-1].created_at) if events else None

    async def is_text_unchanged(
        self, item: ForgeItem, since: str, comments: tuple[Comment, ...]
    ) -> bool | ForgeRefusal:
        author_can_write = await self.can_write(item.author)
        if author_can_write is not False:
            return author_can_write
        edits = await self._read_edits((item.node_id,))
        if isinstance(edits, ForgeRefusal):
            return edits
        edit = edits.get(item.node_id)
        return edit is not None and (
            edit.lastEditedAt is None or parse_time(edit.lastEditedAt) < parse_time(since)
        )

    def is_own_request(self, item: ForgeItem) -> bool:
        return item.kind == "request" and self.me.is_same(item.author)

    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        """Read the comments, including those of the same second: they may come twice, with the same id."""
        since = {"since": after} if after else {}
        lists = [("comment-", f"/issues/{key.name}/comments", since)]
        if key.kind == "request":
            lists += [("line-", f"/pulls/{key.name}/comments", since)]
            lists += [("review-", f"/pulls/{key.name}/reviews", {})]
        comments: list[Comment] = []
        for kind, path, query in lists:
            rows = await self.calls.get_all(Comment, path, query)
            if isinstance(rows, ForgeRefusal):
                return rows
            new = (row for row in rows if not after or parse_time(row.time) >= parse_time(after))
            comments += (row.model_copy(update={"kind": kind}) for row in new)
        return tuple(comments)

    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote it. If the token is a user's, only comments with a mark count."""
        if OURS in (comment.body or ""):
            return True
        ours = (self.account.bot, self.me.login if self.me.is_bot else "")
        return comment.author is not None and any(comment.author.is_called(name) for name in ours)

    async def find_edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        """Query GraphQL for comments whose update time differs from their creation time."""
        changed = [row for row in comments if row.updated_at != row.time]
        edits = await self._read_edits(tuple(row.node_id for row in changed))
        if isinstance(edits, ForgeRefusal):
            return edits
        return frozenset(row for row in changed if not _is_own_text(edits.get(row.node_id), row.author))

    async def find_head_repository(
        self, item: ForgeItem, key: ItemKey, project: Project
    ) -> str | ForgeRefusal:
        push = await self._tokens.may_push(key.repository)
        if push is None:
            push = project.permissions is None or project.permissions.push
        if not push:
            return build_refusal("forbidden", text("forge.no_push", name=key.repository))
        if key.kind == "request" and not item.source_name:
            return build_refusal("moved", text("forge.no_source", item=str(key)))
        return "" if item.source_name.casefold() in ("", project.full_name.casefold()) else item.source_name

    def claimed_at(self, item: ForgeItem, comments: tuple[Comment, ...]) -> str:
        return self.calls.time

    async def find_own_request(self, key: ItemKey, head: str) -> ForgeItem | ForgeRefusal | None:
        """Find the request that has Daiku's mark, or whose head is the commit `head`."""
        mark = build_mark(str(key), REQUEST)
        query = {"state": "all", "sort": "created", "direction": "desc"}
        async for page in self.calls.get_pages(ForgeItem, "/pulls", query):
            if isinstance(page, ForgeRefusal):
                return None if page.kind == "too_large" else page
            for row in page.rows:
                if self.me.is_same(row.author) and (row.sha == head or mark in (row.body or "")):
                    return row
        return None

    async def checks(self, head: str, request: ForgeItem | None) -> Checks | ForgeRefusal:
        commit = f"/commits/{_quote_part(head)}"
        statuses = await self.calls.get_all(_CommitStatus, f"{commit}/status", inside="statuses")
        if isinstance(statuses, ForgeRefusal):
            return statuses
        runs = await self.calls.get_all(_CheckRun, f"{commit}/check-runs", inside="check_runs")
        return runs if isinstance(runs, ForgeRefusal) else _judge(statuses, runs)

    def get_comments_path(self, key: ItemKey) -> str:
        return f"/issues/{key.name}/comments"

    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal:
        return await self.calls.change(Comment, "PATCH", f"/issues/comments/{comment.id}", {"body": body})

    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        path = f"/issues/{key.name}/labels"
        rows = await self.calls.get_all(_NamedLabel, path)
        if isinstance(rows, ForgeRefusal):
            return rows
        names = [row.name for row in rows]
        was_set = any(self.is_label(name, label) for name in names)
        if not was_set:
            added = await self.calls.change(Anything, "POST", path, {"labels": [label]})
            if isinstance(added, ForgeRefusal):
                return added
        stale = [n for n in names if not self.is_label(n, label) and any(self.is_label(n, o) for o in ours)]
        for name in stale:
            removed = await self.calls.change(Anything, "DELETE", f"{path}/{_quote_part(name)}")
            if isinstance(removed, ForgeRefusal) and removed.kind != "gone":
                return removed
        return was_set and not stale

    async def list_requests(self, branch: str) -> tuple[ForgeItem, ...] | ForgeRefusal:
        owner = self.calls.repository.partition("/")[0]
        return await self.calls.get_all(ForgeItem, "/pulls", {"state": "all", "head": f"{owner}:{branch}"})

    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> ForgeItem | ForgeRefusal:
        data = {
            "title": intent.title,
            "head": intent.branch,
            "base": intent.base,
            "body": body,
            "draft": draft,
        }
        created = await self.calls.change(ForgeItem, "POST", "/pulls", data)
        if isinstance(created, ForgeRefusal) and created.kind == "bad" and not draft:
            base = await self.calls.get(Anything, f"/branches/{_quote_part(intent.base)}")
            if isinstance(base, ForgeRefusal) and base.kind in {"gone", "moved"}:
                return build_refusal("moved", text("forge.no_base", branch=intent.base))
        return created

    def is_draft(self, request: ForgeItem) -> bool:
        return request.draft

    async def mark_ready(self, request: ForgeItem) -> ForgeRefusal | None:
        result = await run_graphql(self.calls, Anything, _READY, id=request.node_id)
        return result if isinstance(result, ForgeRefusal) else None

    async def _read_edits(self, ids: tuple[str, ...]) -> dict[str, _Editing] | ForgeRefusal:
        """Return the last edits of the texts with these node ids, without those that cannot be looked up."""
        node_ids = [node for node in ids if node]
        edits: dict[str, _Editing] = {}
        for start in range(0, len(node_ids), _NODES):
            reply = await run_graphql(self.calls, _Nodes, _EDITS, ids=list(node_ids[start : start + _NODES]))
            if isinstance(reply, ForgeRefusal):
                if reply.kind in PASSING:
                    return reply
                continue
            edits |= {node.id: node for node in reply.nodes if node is not None}
        return edits


async def run_graphql(
    calls: RepositoryCalls, shape: type[AnyShape], source: str, **variables: JsonValue
) -> AnyShape | ForgeRefusal:
    """Send a GraphQL query or mutation, once."""
    reply = await calls.change(
        _Reply, "POST", build_graphql_url(calls.api_url), {"query": source, "variables": variables}
    )
    if isinstance(reply, ForgeRefusal):
        return reply
    if reply.errors:
        return build_refusal("bad", text("forge.unreadable", forge="GitHub", url=calls.api_url))
    return calls.as_shape(shape, reply.data)


async def find_login(calls: RepositoryCalls) -> User | ForgeRefusal:
    """Return the token's account. That of a workflow or an App belongs to no user; only GraphQL knows it."""
    me = await calls.get(User, "//user")
    if isinstance(me, ForgeRefusal) and me.kind in {"forbidden", "unauthorized", "gone"}:
        reply = await run_graphql(calls, _Viewer, "query { viewer { login } }")
        return reply if isinstance(reply, ForgeRefusal) else reply.viewer
    return me


def build_graphql_url(api_url: str) -> str:
    """Return the GraphQL address for an API address, on github.com or an own instance."""
    parts = urlsplit(api_url)
    path = "/api/graphql" if parts.path.rstrip("/") == "/api/v3" else f"{parts.path.rstrip('/')}/graphql"
    return parts._replace(path=path, query="", fragment="").geturl()


def _quote_part(name: str) -> str:
    """Quote a part of a path: labels may have any characters."""
    return quote(name, safe="")


def _is_own_text(edit: _Editing | None, author: User | None) -> bool:
    if edit is None:
        return False
    return edit.lastEditedAt is None or (
        author is not None and edit.editor is not None and author.is_called(edit.editor.login)
    )


def _judge(statuses: tuple[_CommitStatus, ...], runs: tuple[_CheckRun, ...]) -> Checks:
    failed = [
        FailedCheck(name=status.context, text=status.description or "", url=status.target_url or "")
        for status in statuses
        if status.state in _RED_STATUS
    ]
    for run in runs:
        if run.conclusion in _RED:
            texts = (run.output.title, run.output.summary, run.output.text) if run.output else ()
            output = "\n\n".join(part for part in texts if part)
            failed.append(FailedCheck(name=run.name, text=output[:_MAX_OUTPUT], url=run.html_url or ""))
    is_waiting = any(run.status != "completed" for run in runs)
    is_waiting = is_waiting or any(status.state == "pending" for status in statuses)
    if is_waiting or (not failed and any(run.conclusion in _OPEN for run in runs)):
        return "pending", ()
    if failed:
        return "failed", tuple(failed)
    return ("passed" if runs or statuses else "none"), ()
