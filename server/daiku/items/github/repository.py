"""A repository of GitHub: its REST paths, its GraphQL questions, and what its answers mean."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from daiku.domain.items.forge import PASSING, FailedCheck, ForgeRefusal
from daiku.domain.items.intents import REQUEST, OpenRequest
from daiku.domain.items.item import ItemKey
from daiku.items.answers import AnyShape, Shape, build_refusal, parse_time
from daiku.items.forge.calls import Calls
from daiku.items.forge.repository import Account, Checks, Listed, Repository
from daiku.items.forge.shapes import Anything, Comment, Event, Item, Label, Project, User
from daiku.items.github.app_auth import Tokens
from daiku.items.labels import is_same_label
from daiku.items.rules.marks import OURS, mark_of
from daiku.texts.text import text

WRITING = frozenset({"admin", "maintain", "write"})
_RED = frozenset({"failure", "timed_out", "startup_failure"})
_OPEN = frozenset({"cancelled", "action_required", "stale"})
"""Conclusions that say nothing of the commit: superseded by a newer run, or waiting for a person."""
_RED_STATUS = frozenset({"failure", "error"})
_MAX_OUTPUT = 20_000
_NODES = 100
"""Maximum ids of one GraphQL question."""
_EDITS = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Comment { lastEditedAt editor { login } } } }"
_READY = (
    "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
)


class _Named(Shape):
    name: Label = ""


class _Permission(Shape):
    permission: str = ""
    user: User | None = None


class _Status(Shape):
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
    """Who changed a text last, and when; neither if nobody did."""

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


class GitHubRepository(Repository):
    """One repository of GitHub. `tokens` may know whether we can push to it."""

    source = "github"
    drafts = (True, False)  # not every repository has drafts

    def __init__(self, calls: Calls, account: Account, tokens: Tokens) -> None:
        super().__init__(calls, account)
        self._tokens = tokens

    def is_label(self, one: str, other: str) -> bool:
        return is_same_label(one, other)

    async def list_items(self, note: str) -> Listed | ForgeRefusal | None:
        """List them newest change first: while the ETag `note` of the first page holds, so do the others. A label with a
        comma cannot be queried: then all open items are listed."""
        label, bot = self.account.labels.todo, self.account.bot
        query = {"state": "open", "sort": "updated", "direction": "desc"}
        query |= {} if "," in label else {"labels": label}
        query |= {"assignee": bot} if bot else {}
        items: list[Item] = []
        etag = ""
        async for page in self.calls.pages(Item, "/issues", query, etag=note):
            if isinstance(page, ForgeRefusal):
                return page
            if page.unchanged:
                return None
            etag = etag if items else page.etag
            items += page.rows
        return Listed(tuple(items), etag)

    async def item(self, key: ItemKey) -> Item | ForgeRefusal:
        return await self.calls.get(Item, f"/{'pulls' if key.kind == 'request' else 'issues'}/{key.name}")

    async def can_push(self, user: User) -> bool | ForgeRefusal:
        found = await self.calls.get(_Permission, f"/collaborators/{_part(user.login)}/permission")
        if isinstance(found, ForgeRefusal):
            return found
        return not (found.user and found.user.is_bot) and found.permission in WRITING

    def events_path(self, item: Item) -> str:
        return f"/issues/{item.number}/events"

    async def find_order(
        self, item: Item, events: list[Event]
    ) -> tuple[User | None, str] | ForgeRefusal | None:
        """Return the last event; a form for new issues sets the label in the name of who opens one."""
        return (events[-1].user, events[-1].created_at) if events else None

    async def text_stood(self, item: Item, since: str, comments: tuple[Comment, ...]) -> bool | ForgeRefusal:
        own = await self.writes(item.author)
        if own is not False:
            return own
        edits = await self._edits((item.node_id,))
        if isinstance(edits, ForgeRefusal):
            return edits
        edit = edits.get(item.node_id)
        return edit is not None and (
            edit.lastEditedAt is None or parse_time(edit.lastEditedAt) < parse_time(since)
        )

    def is_own_request(self, item: Item) -> bool:
        return item.kind == "request" and self.me.is_same(item.author)

    async def comments(self, key: ItemKey, after: str) -> tuple[Comment, ...] | ForgeRefusal:
        """Read the comments of that very second too: they may come twice, with the same id."""
        since = {"since": after} if after else {}
        lists = [("comment-", f"/issues/{key.name}/comments", since)]
        if key.kind == "request":
            lists += [("line-", f"/pulls/{key.name}/comments", since)]
            lists += [("review-", f"/pulls/{key.name}/reviews", {})]
        found: list[Comment] = []
        for kind, path, query in lists:
            rows = await self.calls.every(Comment, path, query)
            if isinstance(rows, ForgeRefusal):
                return rows
            new = (row for row in rows if not after or parse_time(row.time) >= parse_time(after))
            found += (row.model_copy(update={"kind": kind}) for row in new)
        return tuple(found)

    def is_ours(self, comment: Comment) -> bool:
        """Return True if Daiku wrote it. If the token is a user's, only comments with our mark are ours."""
        if OURS in (comment.body or ""):
            return True
        ours = (self.account.bot, self.me.login if self.me.is_bot else "")
        return comment.author is not None and any(comment.author.is_called(name) for name in ours)

    async def edited(
        self, comments: tuple[Comment, ...], *, fresh: bool
    ) -> frozenset[Comment] | ForgeRefusal:
        """Ask GraphQL about reviews, and comments whose time of change is another than that of their creation."""
        doubtful = [row for row in comments if row.updated_at != row.time]
        edits = await self._edits(tuple(row.node_id for row in doubtful))
        if isinstance(edits, ForgeRefusal):
            return edits
        return frozenset(row for row in doubtful if not _is_own_text(edits.get(row.node_id), row.author))

    async def source_of(self, item: Item, key: ItemKey, project: Project) -> str | ForgeRefusal:
        push = await self._tokens.may_push(key.repository)
        if push is None:
            push = project.permissions is None or project.permissions.push
        if not push:
            return build_refusal("forbidden", text("forge.no_push", name=key.repository))
        if key.kind == "request" and not item.source_name:
            return build_refusal("moved", text("forge.no_source", item=str(key)))
        return "" if item.source_name.casefold() in ("", project.full_name.casefold()) else item.source_name

    def claimed_at(self, item: Item, comments: tuple[Comment, ...]) -> str:
        return self.calls.time

    async def request_of(self, key: ItemKey, head: str) -> Item | ForgeRefusal | None:
        """Find the request that has our mark, or whose head is the commit `head`."""
        mark = mark_of(str(key), REQUEST)
        query = {"state": "all", "sort": "created", "direction": "desc"}
        async for page in self.calls.pages(Item, "/pulls", query):
            if isinstance(page, ForgeRefusal):
                return None if page.kind == "too_large" else page
            for row in page.rows:
                if self.me.is_same(row.author) and (row.sha == head or mark in (row.body or "")):
                    return row
        return None

    async def checks(self, head: str, request: Item | None) -> Checks | ForgeRefusal:
        commit = f"/commits/{_part(head)}"
        statuses = await self.calls.every(_Status, f"{commit}/status", inside="statuses")
        if isinstance(statuses, ForgeRefusal):
            return statuses
        runs = await self.calls.every(_CheckRun, f"{commit}/check-runs", inside="check_runs")
        return runs if isinstance(runs, ForgeRefusal) else _judge(statuses, runs)

    def comments_path(self, key: ItemKey) -> str:
        return f"/issues/{key.name}/comments"

    async def change_comment(self, key: ItemKey, comment: Comment, body: str) -> Comment | ForgeRefusal:
        return await self.calls.change(Comment, "PATCH", f"/issues/comments/{comment.id}", {"body": body})

    async def set_label(self, key: ItemKey, label: str, ours: tuple[str, ...]) -> bool | ForgeRefusal:
        path = f"/issues/{key.name}/labels"
        rows = await self.calls.every(_Named, path)
        if isinstance(rows, ForgeRefusal):
            return rows
        names = [row.name for row in rows]
        found = any(self.is_label(name, label) for name in names)
        if not found:
            added = await self.calls.change(Anything, "POST", path, {"labels": [label]})
            if isinstance(added, ForgeRefusal):
                return added
        stale = [n for n in names if not self.is_label(n, label) and any(self.is_label(n, o) for o in ours)]
        for name in stale:
            removed = await self.calls.change(Anything, "DELETE", f"{path}/{_part(name)}")
            if isinstance(removed, ForgeRefusal) and removed.kind != "gone":
                return removed
        return found and not stale

    async def requests_from(self, branch: str) -> tuple[Item, ...] | ForgeRefusal:
        owner = self.calls.repository.partition("/")[0]
        return await self.calls.every(Item, "/pulls", {"state": "all", "head": f"{owner}:{branch}"})

    async def open_request(self, intent: OpenRequest, body: str, draft: bool) -> Item | ForgeRefusal:
        data = {
            "title": intent.title,
            "head": intent.branch,
            "base": intent.base,
            "body": body,
            "draft": draft,
        }
        made = await self.calls.change(Item, "POST", "/pulls", data)
        if isinstance(made, ForgeRefusal) and made.kind == "bad" and not draft:
            base = await self.calls.get(Anything, f"/branches/{_part(intent.base)}")
            if isinstance(base, ForgeRefusal) and base.kind in {"gone", "moved"}:
                return build_refusal("moved", text("forge.no_base", branch=intent.base))
        return made

    def is_draft(self, request: Item) -> bool:
        return request.draft

    async def mark_ready(self, request: Item) -> ForgeRefusal | None:
        done = await query(self.calls, Anything, _READY, id=request.node_id)
        return done if isinstance(done, ForgeRefusal) else None

    async def _edits(self, ids: tuple[str, ...]) -> dict[str, _Editing] | ForgeRefusal:
        """Ask who changed the texts with these node ids last; those that cannot be looked up are missing."""
        known = [node for node in ids if node]
        found: dict[str, _Editing] = {}
        for start in range(0, len(known), _NODES):
            reply = await query(self.calls, _Nodes, _EDITS, ids=list(known[start : start + _NODES]))
            if isinstance(reply, ForgeRefusal):
                if reply.kind in PASSING:
                    return reply
                continue
            found |= {node.id: node for node in reply.nodes if node is not None}
        return found


async def query(
    calls: Calls, shape: type[AnyShape], words: str, **variables: JsonValue
) -> AnyShape | ForgeRefusal:
    """Send a question or a change in GraphQL, once."""
    reply = await calls.change(
        _Reply, "POST", graphql_url(calls.api_url), {"query": words, "variables": variables}
    )
    if isinstance(reply, ForgeRefusal):
        return reply
    if reply.errors:
        return build_refusal("bad", text("forge.unreadable", forge="GitHub", url=calls.api_url))
    return calls.as_shape(shape, reply.data)


async def find_login(calls: Calls) -> User | ForgeRefusal:
    """Ask whose token it is. One that a workflow or an App was given belongs to no user, and only GraphQL knows it."""
    me = await calls.get(User, "//user")
    if isinstance(me, ForgeRefusal) and me.kind in {"forbidden", "unauthorized", "gone"}:
        reply = await query(calls, _Viewer, "query { viewer { login } }")
        return reply if isinstance(reply, ForgeRefusal) else reply.viewer
    return me


def graphql_url(api_url: str) -> str:
    """Return the address of GraphQL: beside the API of github.com, and elsewhere where an instance has it."""
    parts = urlsplit(api_url)
    path = "/api/graphql" if parts.path.rstrip("/") == "/api/v3" else f"{parts.path.rstrip('/')}/graphql"
    return parts._replace(path=path, query="", fragment="").geturl()


def _part(name: str) -> str:
    """Quote a part of a path: labels may have any characters."""
    return quote(name, safe="")


def _is_own_text(edit: _Editing | None, author: User | None) -> bool:
    if edit is None:
        return False
    return edit.lastEditedAt is None or (
        author is not None and edit.editor is not None and author.is_called(edit.editor.login)
    )


def _judge(statuses: tuple[_Status, ...], runs: tuple[_CheckRun, ...]) -> Checks:
    failed = [
        FailedCheck(name=each.context, text=each.description or "", url=each.target_url or "")
        for each in statuses
        if each.state in _RED_STATUS
    ]
    for run in runs:
        if run.conclusion in _RED:
            said = (run.output.title, run.output.summary, run.output.text) if run.output else ()
            words = "\n\n".join(part for part in said if part)
            failed.append(FailedCheck(name=run.name, text=words[:_MAX_OUTPUT], url=run.html_url or ""))
    is_waiting = any(run.status != "completed" for run in runs)
    is_waiting = is_waiting or any(each.state == "pending" for each in statuses)
    if is_waiting or (not failed and any(run.conclusion in _OPEN for run in runs)):
        return "pending", ()
    if failed:
        return "failed", tuple(failed)
    return ("passed" if runs or statuses else "none"), ()
