"""What a GitLab of tests holds: accounts, projects, issues, merge requests, notes, label events, pipelines."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
GUEST, REPORTER, DEVELOPER, MAINTAINER = 10, 20, 30, 40
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_CLOSES = re.compile(r"^/close\s*$", re.MULTILINE)
_DRAFT = re.compile(r"\s*(\[draft\]|\(draft\)|draft:|draft - )", re.IGNORECASE)


@dataclass
class Thread:
    """An issue or a merge request with what belongs to it; `row` is how the API shows it."""

    kind: str
    row: Row
    notes: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)


@dataclass
class Project:
    id: int
    path: str
    repository: Path | None = None
    members: dict[int, int] = field(default_factory=dict)
    archived: bool = False
    default_branch: str = "main"
    issues: dict[int, Thread] = field(default_factory=dict)
    requests: dict[int, Thread] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    """Every label that was ever used."""
    pipelines: list[Row] = field(default_factory=list)
    jobs: dict[int, tuple[int, Row, str]] = field(default_factory=dict)
    """Jobs by id, each with its pipeline and its log."""

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.repository), *args], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def commit_of(self, branch: str) -> str:
        """Where a branch stands; without a repository every branch is somewhere."""
        return (
            self.git("rev-parse", "--verify", "-q", f"refs/heads/{branch}") if self.repository else "0" * 40
        )

    def holds(self, branch: str, commit: str) -> bool:
        if not self.repository:
            return True
        tip = self.commit_of(branch)
        done = ["git", "-C", str(self.repository), "merge-base", "--is-ancestor", commit, tip]
        return bool(tip) and subprocess.run(done, capture_output=True, check=False).returncode == 0


class State:
    """Everything, and the changes that people make; what only some may do is up to who calls."""

    def __init__(self) -> None:
        self.url = ""
        self.users: dict[int, Row] = {}
        self.tokens: dict[str, int] = {}
        self.projects: dict[str, Project] = {}
        self._ids = 0
        self._now = BEGAN

    def id(self) -> int:
        self._ids += 1
        return self._ids

    def now(self) -> str:
        self._now += timedelta(seconds=10)
        return self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def user(self, username: str, *, bot: bool = False, token: str = "") -> int:
        key = self.id()
        self.users[key] = {"id": key, "username": username, "name": username, "state": "active", "bot": bot}
        self.tokens[token or f"glpat-{username}"] = key
        return key

    def project(self, path: str, members: dict[int, int], repository: Path | None = None) -> Project:
        self.projects[path] = Project(self.id(), path, repository, members)
        return self.projects[path]

    def shown(self, user: int) -> Row:
        """An account as it stands beside what it did: without `bot`."""
        return {name: value for name, value in self.users[user].items() if name != "bot"}

    def open(self, project: Project, kind: str, author: int, row: Row) -> Thread:
        threads = project.issues if kind == "issue" else project.requests
        iid, time = len(threads) + 1, self.now()
        place = "issues" if kind == "issue" else "merge_requests"
        made: Row = {
            "id": self.id(),
            "iid": iid,
            "project_id": project.id,
            "state": "opened",
            "description": "",
            "author": self.shown(author),
            "labels": [],
            "assignees": [],
            "created_at": time,
            "updated_at": time,
            "discussion_locked": None,
            "web_url": f"{self.url}/{project.path}/-/{place}/{iid}",
        }
        if kind == "issue":
            made |= {"moved_to_id": None, "confidential": False}
        else:
            made |= {
                "source_project_id": project.id,
                "target_project_id": project.id,
                "allow_collaboration": False,
            }
        labels = row.pop("labels", [])
        threads[iid] = Thread(kind, made | row)
        self.label(threads[iid], author, labels)
        self.act(threads[iid], made | row)
        return threads[iid]

    def label(self, thread: Thread, actor: int, add: list[str], remove: tuple[str, ...] = ()) -> None:
        for name, action in [*((n, "add") for n in add), *((n, "remove") for n in remove)]:
            has = name in thread.row["labels"]
            if has == (action == "add"):
                continue
            labels = (
                [*thread.row["labels"], name] if not has else [n for n in thread.row["labels"] if n != name]
            )
            thread.row["labels"] = labels
            thread.events.append(
                {
                    "id": self.id(),
                    "user": self.shown(actor),
                    "created_at": self.now(),
                    "action": action,
                    "label": {"id": 1, "name": name},
                }
            )
            thread.row["updated_at"] = self.now()

    def note(self, thread: Thread, author: int, body: str, *, system: bool = False, **more: Any) -> Row:
        time = self.now()
        row = {
            "id": self.id(),
            "body": body,
            "author": self.shown(author),
            "created_at": time,
            "updated_at": time,
            "system": system,
            "internal": False,
            "confidential": False,
            **more,
        }
        thread.notes.append(row)
        thread.row["updated_at"] = time
        if not system:
            self.act(thread, {"description": body})
        return row

    def describe(self, thread: Thread, actor: int, description: str) -> None:
        thread.row["description"] = description
        self.note(thread, actor, "changed the description", system=True)

    def act(self, thread: Thread, row: Row) -> None:
        """Quick actions: GitLab does what lines of a text say, in the name of who wrote it."""
        if _CLOSES.search(row.get("description") or ""):
            thread.row["state"] = "closed"

    def seen(self, project: Project, thread: Thread) -> Row:
        """The row as it is shown now."""
        if thread.kind == "issue":
            return thread.row
        row = dict(thread.row)
        row["draft"] = _DRAFT.match(row["title"]) is not None
        row["sha"] = project.commit_of(row["source_branch"]) or None
        mine = [each for each in project.pipelines if each["sha"] == row["sha"]]
        return row | {"head_pipeline": mine[-1] if mine else None}

    def pipeline(self, project: Project, sha: str, status: str, jobs: dict[str, str]) -> Row:
        """A pipeline with its failed jobs, each with its log."""
        row: Row = {"id": self.id(), "iid": 1, "sha": sha, "status": status, "project_id": project.id}
        project.pipelines.append(row)
        for name, log in jobs.items():
            key = self.id()
            allowed = name.startswith("maybe")
            job = {"id": key, "name": name, "status": "failed", "allow_failure": allowed}
            project.jobs[key] = (row["id"], job | {"web_url": f"{self.url}/{project.path}/-/jobs/{key}"}, log)
        return row
