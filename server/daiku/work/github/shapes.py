"""What GitHub answers, as far as it is looked at; whatever else stands there is passed over."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.work.answers import Shape


class User(Shape):
    login: str = ""
    type: str = "User"

    def is_called(self, login: str) -> bool:
        return bool(login) and self.login.casefold() == login.casefold()


class Label(Shape):
    name: str | None = None


class Event(Shape):
    id: int
    event: str
    actor: User | None = None
    created_at: str
    label: Label | None = None


class Issue(Shape):
    number: int
    node_id: str = ""
    title: str = ""
    body: str | None = None
    state: str
    locked: bool = False
    user: User | None = None
    labels: tuple[Label, ...] = ()
    assignees: tuple[User, ...] = ()
    updated_at: str
    html_url: str = ""
    pull_request: JsonValue = None

    def has_label(self, name: str) -> bool:
        return any((label.name or "").casefold() == name.casefold() for label in self.labels)

    def is_assigned_to(self, login: str) -> bool:
        return any(user.is_called(login) for user in self.assignees)


class Comment(Shape):
    """A comment of an issue or a request, or one of a review, which has a `path`."""

    id: int
    node_id: str = ""
    body: str | None = None
    user: User | None = None
    created_at: str
    updated_at: str = ""
    path: str = ""
    line: int | None = None
    original_line: int | None = None


class Review(Shape):
    id: int
    node_id: str = ""
    body: str | None = None
    user: User | None = None
    submitted_at: str | None = None


class Permissions(Shape):
    push: bool = False


class Repository(Shape):
    full_name: str
    clone_url: str = ""
    default_branch: str = ""
    archived: bool = False
    permissions: Permissions | None = None


class Named(Shape):
    full_name: str


class End(Shape):
    """One end of a request: a branch, where it stands, and in which repository (None: that was deleted)."""

    ref: str
    sha: str = ""
    repo: Named | None = None


class Pull(Shape):
    number: int
    node_id: str = ""
    html_url: str = ""
    body: str | None = None
    state: str = "open"
    draft: bool = False
    merged_at: str | None = None
    user: User | None = None
    head: End
    base: End


class Permission(Shape):
    permission: str = ""
    user: User | None = None


class Status(Shape):
    context: str = ""
    state: str
    description: str | None = None
    target_url: str | None = None


class Statuses(Shape):
    statuses: tuple[Status, ...] = ()


class Output(Shape):
    title: str | None = None
    summary: str | None = None
    text: str | None = None


class CheckRun(Shape):
    name: str = ""
    status: str
    conclusion: str | None = None
    html_url: str | None = None
    output: Output | None = None


class CheckRuns(Shape):
    check_runs: tuple[CheckRun, ...] = ()


class Editing(Shape):
    """Who changed a text last, and when; neither where nobody did."""

    id: str = ""
    lastEditedAt: str | None = None  # noqa: N815  # as GraphQL spells it
    editor: User | None = None


class Nodes(Shape):
    nodes: tuple[Editing | None, ...] = ()


class Made(Shape):
    """What was made: a comment."""

    id: int
    html_url: str = ""


class Anything(Shape):
    """An answer that nobody looks at."""
