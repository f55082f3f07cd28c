"""Answers of GitHub and GitLab in one vocabulary: each field knows the name that either forge uses."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AliasChoices, AliasPath, BeforeValidator, Field, JsonValue

from daiku.domain.items.item import ItemKind
from daiku.items.source import Shape

_BOT = re.compile(r".*\[bot\]|(?:project|group)_\d+_bot(?:_\w+)?|service_account_\w+", re.IGNORECASE)


def _aliases(*names: str | AliasPath) -> AliasChoices:
    return AliasChoices(*names)


def _name_of(label: object) -> object:
    """Return the name of a label, which GitHub gives as an object."""
    return (label.get("name") or "") if isinstance(label, dict) else label  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # validated next


Label = Annotated[str, BeforeValidator(_name_of)]


class User(Shape):
    id: int = 0
    login: str = Field("", validation_alias=_aliases("login", "username"))
    type: str = "User"
    bot: bool = False
    is_admin: bool = False

    @property
    def is_bot(self) -> bool:
        """Whether it is a program, which cannot give orders."""
        return self.bot or self.type != "User" or _BOT.fullmatch(self.login) is not None

    def is_called(self, login: str) -> bool:
        return bool(login) and self.login.casefold() == login.casefold()

    def is_same(self, other: User | None) -> bool:
        if other is None:
            return False
        return self.id == other.id if self.id and other.id else self.is_called(other.login)


class Event(Shape):
    """A change of an item's labels."""

    id: int
    action: str = Field(validation_alias=_aliases("event", "action"))
    user: User | None = Field(None, validation_alias=_aliases("actor", "user"))
    created_at: str
    label: Label | None = None


class Pipeline(Shape):
    id: int
    status: str = ""


class ForgeItem(Shape):
    """An issue or a request. A request has a source branch, unless GitHub lists it among the issues."""

    number: int = Field(validation_alias=_aliases("number", "iid"))
    node_id: str = ""
    title: str = ""
    body: str | None = Field(None, validation_alias=_aliases("body", "description"))
    state: str = "open"
    locked: bool = False
    discussion_locked: bool | None = None
    author: User | None = Field(None, validation_alias=_aliases("user", "author"))
    labels: tuple[Label, ...] = ()
    assignees: tuple[User, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    url: str = Field("", validation_alias=_aliases("html_url", "web_url"))
    moved_to_id: int | None = None
    pull_request: JsonValue = None
    draft: bool = False
    merged_at: str | None = None
    source_branch: str = Field("", validation_alias=_aliases("source_branch", AliasPath("head", "ref")))
    target_branch: str = Field("", validation_alias=_aliases("target_branch", AliasPath("base", "ref")))
    sha: str | None = Field(None, validation_alias=_aliases("sha", AliasPath("head", "sha")))
    source_name: str = Field("", validation_alias=_aliases(AliasPath("head", "repo", "full_name")))
    source_project_id: int | None = None
    allow_collaboration: bool = False
    head_pipeline: Pipeline | None = None

    @property
    def kind(self) -> ItemKind:
        return "request" if self.source_branch or self.pull_request is not None else "issue"

    @property
    def is_open(self) -> bool:
        return self.state in ("open", "opened")

    @property
    def is_merged(self) -> bool:
        return self.state == "merged" or bool(self.merged_at)

    def is_assigned_to(self, login: str) -> bool:
        return any(user.is_called(login) for user in self.assignees)


class Comment(Shape):
    """A comment, a review, a review's comment, or a note of GitLab itself (`system`). `kind`: prefix of its id."""

    id: int
    kind: str = ""
    node_id: str = ""
    body: str | None = None
    author: User | None = Field(None, validation_alias=_aliases("user", "author"))
    created_at: str | None = Field(None, validation_alias=_aliases("submitted_at", "created_at"))
    updated_at: str = ""
    system: bool = False
    path: str | None = Field(None, validation_alias=_aliases("path", AliasPath("position", "new_path")))
    old_path: str | None = Field(None, validation_alias=_aliases(AliasPath("position", "old_path")))
    line: int | None = Field(None, validation_alias=_aliases("line", AliasPath("position", "new_line")))
    old_line: int | None = Field(
        None, validation_alias=_aliases("original_line", AliasPath("position", "old_line"))
    )

    @property
    def time(self) -> str:
        return self.created_at or ""


class _Access(Shape):
    access_level: int = 0


class Permissions(Shape):
    """Daiku's permissions in a repository. GitLab gives levels, without inherited ones."""

    push: bool = False
    project_access: _Access | None = None
    group_access: _Access | None = None

    @property
    def level(self) -> int:
        accesses = (self.project_access, self.group_access)
        return max((access.access_level for access in accesses if access is not None), default=0)


class Project(Shape):
    """A repository."""

    id: int = 0
    full_name: str = Field(validation_alias=_aliases("full_name", "path_with_namespace"))
    clone_url: str = Field("", validation_alias=_aliases("clone_url", "http_url_to_repo"))
    default_branch: str | None = None
    archived: bool = False
    permissions: Permissions | None = None


class Anything(Shape):
    """An answer whose content is not read."""
