"""The part of GitLab's REST API that work items need, over the state of a test."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.work.gitlabfake.state import DEVELOPER, REPORTER, Project, Row, State, Thread

Query = dict[str, str]


class Refused(Exception):
    def __init__(self, status: int, message: Any) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass
class Asked:
    """One request: who asks, about which project, with what."""

    state: State
    user: int
    query: Query
    data: Row
    project: Project

    @property
    def level(self) -> int:
        return self.project.members.get(self.user, 0)

    def thread(self, kind: str, iid: str) -> Thread:
        threads = self.project.issues if kind == "issues" else self.project.requests
        if int(iid) not in threads:
            raise Refused(404, "404 Not found")
        return threads[int(iid)]


def _project(asked: Asked) -> Row:
    p = asked.project
    level = p.members.get(asked.user)
    return {
        "id": p.id,
        "permissions": {"project_access": level and {"access_level": level}, "group_access": None},
        "path_with_namespace": p.path,
        "default_branch": p.default_branch,
        "archived": p.archived,
        "http_url_to_repo": f"{asked.state.url}/{p.path}.git",
        "web_url": f"{asked.state.url}/{p.path}",
    }


def _member(asked: Asked, user: str) -> Row:
    level = asked.project.members.get(int(user))
    if level is None:
        raise Refused(404, "404 Not found")
    return asked.state.shown(int(user)) | {"access_level": level}


def _labels(asked: Asked) -> list[Row]:
    p = asked.project
    threads = [*p.issues.values(), *p.requests.values()]
    p.labels |= {name for thread in threads for name in thread.row["labels"]}
    names = sorted(p.labels)
    names = [name for name in names if asked.query.get("search", "").lower() in name.lower()]

    def count(rows: list[Thread], name: str) -> int:
        return sum(name in each.row["labels"] and each.row["state"] == "opened" for each in rows)

    counted = asked.query.get("with_counts") == "true"
    return [
        {"id": n, "name": name}
        | (
            {
                "open_issues_count": count([*p.issues.values()], name),
                "open_merge_requests_count": count([*p.requests.values()], name),
            }
            if counted
            else {}
        )
        for n, name in enumerate(names, 1)
    ]


def _threads(asked: Asked, kind: str) -> list[Row]:
    threads = asked.project.issues if kind == "issues" else asked.project.requests
    rows = [asked.state.seen(asked.project, thread) for thread in threads.values()]
    wanted = [name for name in asked.query.get("labels", "").split(",") if name]
    rows = [row for row in rows if set(wanted) <= set(row["labels"])]
    if (status := asked.query.get("state", "all")) != "all":
        rows = [row for row in rows if row["state"] == status]
    if branch := asked.query.get("source_branch"):
        rows = [row for row in rows if row["source_branch"] == branch]
    return sorted(rows, key=lambda row: row["updated_at"], reverse=True)


def _open(asked: Asked, kind: str) -> Row:
    if kind == "issues":
        labels = _names(asked.data.pop("labels", [])) if asked.level >= REPORTER else []
        row = {
            "title": asked.data["title"],
            "description": asked.data.get("description", ""),
            "labels": labels,
        }
        return asked.state.open(asked.project, "issue", asked.user, row).row
    if asked.level < DEVELOPER:
        raise Refused(403, "403 Forbidden")
    names = ("source_branch", "target_branch", "title", "description")
    row = {name: asked.data.get(name, "") for name in names}
    for branch in (row["source_branch"], row["target_branch"]):
        if not asked.project.commit_of(branch):
            raise Refused(400, {"base": [f'Branch "{branch}" does not exist']})
    for other in asked.project.requests.values():
        same = other.row["source_branch"] == row["source_branch"] and other.row["state"] == "opened"
        if same and other.row["target_branch"] == row["target_branch"]:
            told = f"Another open merge request already exists for this source branch: !{other.row['iid']}"
            raise Refused(409, [told])
    made = asked.state.open(asked.project, "request", asked.user, row)
    return asked.state.seen(asked.project, made)


def _get(asked: Asked, kind: str, iid: str) -> Row:
    return asked.state.seen(asked.project, asked.thread(kind, iid))


def _names(value: Any) -> list[str]:
    found = value.split(",") if isinstance(value, str) else [n for each in value for n in each.split(",")]
    return [name.strip() for name in found if name.strip()]


def _update(asked: Asked, kind: str, iid: str) -> Row:
    thread = asked.thread(kind, iid)
    mine = thread.row["author"]["id"] == asked.user
    if asked.level < REPORTER and not mine:
        raise Refused(403, "403 Forbidden")
    data = asked.data
    if asked.level >= REPORTER:
        now = set(thread.row["labels"])
        add, remove = set(_names(data.get("add_labels", ""))), set(_names(data.get("remove_labels", "")))
        if "labels" in data:
            whole = set(_names(data["labels"]))
            add, remove = add | (whole - now), remove | (now - whole)
        asked.state.label(thread, asked.user, sorted(add), tuple(sorted(remove)))
        if "assignee_ids" in data:
            thread.row["assignees"] = [asked.state.shown(each) for each in data["assignee_ids"] if each]
    if "description" in data and data["description"] != thread.row["description"]:
        asked.state.describe(thread, asked.user, data["description"])
    for name in ("title", "discussion_locked"):
        if name in data:
            thread.row[name] = data[name]
    if event := data.get("state_event"):
        thread.row["state"] = {"close": "closed", "reopen": "opened"}[event]
    thread.row["updated_at"] = asked.state.now()
    return asked.state.seen(asked.project, thread)


def _notes(asked: Asked, kind: str, iid: str) -> list[Row]:
    rows = sorted(
        asked.thread(kind, iid).notes, key=lambda row: row[asked.query.get("order_by", "created_at")]
    )
    return rows if asked.query.get("sort") == "asc" else rows[::-1]


def _comment(asked: Asked, kind: str, iid: str) -> Row:
    thread = asked.thread(kind, iid)
    if thread.row["discussion_locked"] and asked.level < REPORTER:
        raise Refused(403, "403 Forbidden")
    return asked.state.note(thread, asked.user, asked.data["body"])


def _one_note(asked: Asked, kind: str, iid: str, key: str) -> Row:
    found = next((row for row in asked.thread(kind, iid).notes if row["id"] == int(key)), None)
    if found is None:
        raise Refused(404, "404 Not found")
    return found


def _edit_note(asked: Asked, kind: str, iid: str, key: str) -> Row:
    row = _one_note(asked, kind, iid, key)
    if row["author"]["id"] != asked.user and asked.level < 40:
        raise Refused(403, "403 Forbidden")
    row["body"], row["updated_at"] = asked.data["body"], asked.state.now()
    asked.state.act(asked.thread(kind, iid), {"description": row["body"]})
    return row


def _events(asked: Asked, kind: str, iid: str) -> list[Row]:
    return asked.thread(kind, iid).events


def _requests_of(asked: Asked, commit: str) -> list[Row]:
    rows = [asked.state.seen(asked.project, each) for each in asked.project.requests.values()]
    return [row for row in rows if asked.project.holds(row["source_branch"], commit)]


def _pipelines(asked: Asked) -> list[Row]:
    rows = [row for row in asked.project.pipelines if row["sha"] == asked.query.get("sha", row["sha"])]
    return rows[::-1]


def _jobs(asked: Asked, pipeline: str) -> list[Row]:
    return [row for owner, row, _ in asked.project.jobs.values() if owner == int(pipeline)]


def _trace(asked: Asked, job: str) -> str:
    return asked.project.jobs[int(job)][2]


Handler = Callable[..., Any]
_KIND = r"/(issues|merge_requests)"
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "", _project),
    ("GET", r"/members/all/(\d+)", _member),
    ("GET", "/labels", _labels),
    ("GET", _KIND, _threads),
    ("POST", _KIND, _open),
    ("GET", _KIND + r"/(\d+)", _get),
    ("PUT", _KIND + r"/(\d+)", _update),
    ("GET", _KIND + r"/(\d+)/notes", _notes),
    ("POST", _KIND + r"/(\d+)/notes", _comment),
    ("GET", _KIND + r"/(\d+)/notes/(\d+)", _one_note),
    ("PUT", _KIND + r"/(\d+)/notes/(\d+)", _edit_note),
    ("GET", _KIND + r"/(\d+)/resource_label_events", _events),
    ("GET", r"/repository/commits/(\w+)/merge_requests", _requests_of),
    ("GET", "/pipelines", _pipelines),
    ("GET", r"/pipelines/(\d+)/jobs", _jobs),
    ("GET", r"/jobs/(\d+)/trace", _trace),
)
_PROJECT = re.compile(r"/api/v4/projects/([^/]+)(.*)")


def answer(state: State, user: int, method: str, path: str, query: Query, data: Row) -> Any:
    """What the API answers; raises Refused."""
    if path == "/api/v4/user":
        return state.users[user]
    if found := re.fullmatch(r"/api/v4/users/(\d+)", path):
        if int(found[1]) not in state.users:
            raise Refused(404, "404 User Not Found")
        return state.users[int(found[1])]
    found = _PROJECT.fullmatch(path)
    named = unquote(found[1]) if found else ""
    project = next((p for p in state.projects.values() if named in (p.path, str(p.id))), None)
    if found is None or project is None:
        raise Refused(404, "404 Project Not Found")
    if method != "GET" and project.archived:
        raise Refused(403, "403 Forbidden")
    for verb, pattern, handler in ROUTES:
        if verb == method and (parts := re.fullmatch(pattern, found[2])):
            return handler(Asked(state, user, query, data, project), *parts.groups())
    raise Refused(404, "404 Not Found")
