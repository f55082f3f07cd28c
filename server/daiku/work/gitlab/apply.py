"""Carries out intents on GitLab: labels, comments, the progress comment, merge requests."""

from __future__ import annotations

import re
from typing import assert_never

from daiku.core.work.marks import PROGRESS, mark_of, without_marks
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
from daiku.settings.config import WorkLabels
from daiku.texts.text import text
from daiku.work.answers import refused
from daiku.work.gitlab.calls import Calls, path_of
from daiku.work.gitlab.people import People
from daiku.work.gitlab.shapes import Item, Note, Project
from daiku.work.labels import label_of, our_labels

_QUICK_ACTION = re.compile(r"^([ \t]*)(?=/[^\W\d])", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft\s-\s)\s*", re.IGNORECASE)
TITLE = 255
"""Characters that a title may have."""
DRAFT = "Draft: "


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


class Applier:
    """Carries out intents about one item. What may have been done before is looked for first."""

    def __init__(self, calls: Calls, people: People, key: ItemKey, labels: WorkLabels) -> None:
        self._calls = calls
        self._people = people
        self._key = key
        self._labels = labels
        self._notes = f"{path_of(key)}/notes"

    async def apply(self, operation: str, intent: ForgeIntent, again: bool) -> Outcome | ForgeRefusal:
        mark = mark_of(str(self._key), operation)
        match intent:
            case SetState():
                done = await self._set_state(intent.state)
            case PostComment():
                done = await self._comment(intent.text, mark, again)
            case ShowProgress():
                done = await self._progress(intent.text)
            case OpenRequest():
                done = await self._open(intent, mark, again)
            case MarkReady():
                done = await self._ready(intent.branch)
            case _:
                assert_never(intent)
        return await self._why(done) if isinstance(done, ForgeRefusal) else done

    async def _set_state(self, state: ItemState) -> Outcome | ForgeRefusal:
        item = await self._calls.get(Item, path_of(self._key))
        if isinstance(item, ForgeRefusal):
            return item
        label = label_of(self._labels, state)
        ours = [each for each in our_labels(self._labels) if each in item.labels]
        if ours == [label]:
            return Outcome(reference=item.web_url, found=True)
        # Never the whole list: what others set meanwhile would be lost.
        change = {"add_labels": label, "remove_labels": ",".join(each for each in ours if each != label)}
        done = await self._calls.change(
            "put", Item, path_of(self._key), {name: each for name, each in change.items() if each}
        )
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=done.web_url)

    async def _comment(self, said: str, mark: str, again: bool) -> Outcome | ForgeRefusal:
        if again:
            found = await self._own_note(mark)
            if found is not None:
                return (
                    found if isinstance(found, ForgeRefusal) else Outcome(reference=str(found.id), found=True)
                )
        return await self._post(f"{harmless(said)}\n\n{mark}")

    async def _progress(self, said: str) -> Outcome | ForgeRefusal:
        body = f"{PROGRESS}\n{harmless(said)}"
        found = await self._own_note(PROGRESS)
        if isinstance(found, ForgeRefusal):
            return found
        if found is None:
            return await self._post(body)
        if (found.body or "").strip() == body.strip():
            return Outcome(reference=str(found.id), found=True)
        done = await self._calls.change("put", Note, f"{self._notes}/{found.id}", {"body": body})
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=str(done.id))

    async def _post(self, body: str) -> Outcome | ForgeRefusal:
        done = await self._calls.change("post", Note, self._notes, {"body": body})
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=str(done.id))

    async def _own_note(self, mark: str) -> Note | ForgeRefusal | None:
        """Our comment with `mark`: others may have copied it."""
        newest = {"sort": "desc", "order_by": "created_at"}
        async for rows in self._calls.pages(Note, self._notes, newest):
            if isinstance(rows, ForgeRefusal):
                return rows
            for note in rows:
                if not note.system and self._people.is_ours(note) and _has(note.body or "", mark):
                    return note
        return None

    async def _open(self, intent: OpenRequest, mark: str, again: bool) -> Outcome | ForgeRefusal:
        if again and (found := await self._own_request(intent.branch, mark)) is not None:
            return found if isinstance(found, ForgeRefusal) else Outcome(reference=found.web_url, found=True)
        done = await self._calls.change(
            "post",
            Item,
            "/merge_requests",
            {
                "source_branch": intent.branch,
                "target_branch": intent.base,
                "title": as_draft(intent.title, intent.branch),
                "description": f"{harmless(intent.text)}\n\n{mark}",
            },
        )
        if isinstance(done, ForgeRefusal) and done.kind == "exists":
            found = await self._own_request(intent.branch, mark)
            if found is not None:
                return (
                    found if isinstance(found, ForgeRefusal) else Outcome(reference=found.web_url, found=True)
                )
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=done.web_url)

    async def _own_request(self, branch: str, mark: str) -> Item | ForgeRefusal | None:
        """The request that this intent made, whatever became of it; else the open one of ours from `branch`."""
        rows = await self._calls.every(Item, "/merge_requests", {"source_branch": branch, "state": "all"})
        if isinstance(rows, ForgeRefusal):
            return rows
        ours = [each for each in rows if each.author and each.author.id == self._people.me.id]
        ours = [each for each in ours if each.source_branch == branch]
        marked = (each for each in ours if mark in (each.description or ""))
        return next(marked, None) or next((each for each in ours if each.state == "opened"), None)

    async def _ready(self, branch: str) -> Outcome | ForgeRefusal:
        item = await self._request(branch)
        if isinstance(item, ForgeRefusal):
            return item
        if item.state != "opened":
            return refused("closed", text("gitlab.closed", item=item.web_url))
        if not is_draft(item.title):
            return Outcome(reference=item.web_url, found=True)
        place = f"/merge_requests/{item.iid}"
        done = await self._calls.change("put", Item, place, {"title": without_draft(item.title) or branch})
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=done.web_url)

    async def _request(self, branch: str) -> Item | ForgeRefusal:
        """The request that is worked, or that we made from `branch`: an open one where there are several."""
        if self._key.kind == "request":
            return await self._calls.get(Item, path_of(self._key))
        rows = await self._calls.every(Item, "/merge_requests", {"source_branch": branch, "state": "all"})
        if isinstance(rows, ForgeRefusal):
            return rows
        ours = [each for each in rows if each.author and each.author.id == self._people.me.id]
        if not ours:
            return refused("gone", text("gitlab.no_request", branch=branch))
        return max(ours, key=lambda each: (each.state == "opened", each.iid))

    async def _why(self, refusal: ForgeRefusal) -> ForgeRefusal:
        """GitLab says 403 and 404 to many things: what stands behind it is asked for."""
        if refusal.kind == "gone" and refusal.message.id != "gitlab.no_request":
            item = await self._calls.get(Item, path_of(self._key))
            gone = isinstance(item, ForgeRefusal) and item.kind == "gone"
            return refused("gone", text("gitlab.gone", item=str(self._key))) if gone else refusal
        if refusal.kind != "forbidden":
            return refusal
        project = await self._calls.get(Project, "")
        if not isinstance(project, ForgeRefusal) and project.archived:
            return refused("archived", text("gitlab.archived", name=self._key.repository))
        item = await self._calls.get(Item, path_of(self._key))
        if isinstance(item, ForgeRefusal):
            return refusal
        if item.moved_to_id is not None:
            return refused("moved", text("gitlab.moved", item=str(self._key)))
        if item.discussion_locked:
            return refused("locked", text("gitlab.locked", item=str(self._key)))
        return refusal


def _has(body: str, mark: str) -> bool:
    """A progress comment begins with its mark; every other one has it somewhere."""
    return body.startswith(PROGRESS) if mark == PROGRESS else mark in body
