"""What GitLab answers, as far as it is looked at; whatever else stands there is passed over."""

from __future__ import annotations

from daiku.work.answers import Shape


class User(Shape):
    id: int
    username: str = ""
    bot: bool = False
    is_admin: bool = False


class Member(User):
    access_level: int = 0
    state: str = "active"


class Access(Shape):
    access_level: int = 0


class Permissions(Shape):
    """What we may do in a project, as far as that is not inherited from further up."""

    project_access: Access | None = None
    group_access: Access | None = None

    @property
    def level(self) -> int:
        found = (self.project_access, self.group_access)
        return max((each.access_level for each in found if each is not None), default=0)


class Project(Shape):
    id: int
    permissions: Permissions | None = None
    path_with_namespace: str = ""
    default_branch: str | None = None
    archived: bool = False
    http_url_to_repo: str = ""


class CountedLabel(Shape):
    """A label of a project. A count is None where GitLab does not say it."""

    name: str
    open_issues_count: int | None = None
    open_merge_requests_count: int | None = None


class EventLabel(Shape):
    name: str = ""


class LabelEvent(Shape):
    id: int
    user: User | None = None
    created_at: str
    action: str
    label: EventLabel | None = None


class Pipeline(Shape):
    id: int
    sha: str = ""
    status: str = ""


class Job(Shape):
    id: int
    name: str = ""
    allow_failure: bool = False
    web_url: str | None = None


class Item(Shape):
    """An issue, or a merge request, which has a `source_branch`."""

    iid: int
    title: str = ""
    description: str | None = None
    state: str
    author: User | None = None
    labels: tuple[str, ...] = ()
    assignees: tuple[User, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    web_url: str = ""
    discussion_locked: bool | None = None
    moved_to_id: int | None = None
    source_branch: str = ""
    target_branch: str = ""
    source_project_id: int | None = None
    allow_collaboration: bool = False
    sha: str | None = None
    head_pipeline: Pipeline | None = None

    def is_assigned_to(self, name: str) -> bool:
        return any(user.username.casefold() == name.casefold() for user in self.assignees)


class Position(Shape):
    new_path: str | None = None
    old_path: str | None = None
    new_line: int | None = None
    old_line: int | None = None


class Note(Shape):
    """A comment, one of a review (which has a `position`), or a note of GitLab itself (`system`)."""

    id: int
    body: str | None = None
    author: User | None = None
    created_at: str
    updated_at: str = ""
    system: bool = False
    position: Position | None = None
