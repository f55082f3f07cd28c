"""What changed about an item of GitLab: whether it is still wanted, new comments and reviews, the checks of a commit."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from daiku.domain.items.forge import FailedCheck, ForgeRefusal, ItemNews, Said
from daiku.domain.items.item import ItemKey
from daiku.settings.config import WorkLabels
from daiku.texts.text import NO_TEXT, Text, text
from daiku.work.answers import moment
from daiku.work.gitlab.calls import Calls, path_of
from daiku.work.gitlab.people import People
from daiku.work.gitlab.read import said_in
from daiku.work.gitlab.shapes import Item, Job, Note, Pipeline
from daiku.work.labels import our_labels
from daiku.work.source import Strip

SHOWN_OF_A_JOB = 8_000
"""Characters of the end of a failed job's log."""
MOST_JOBS = 10
_EDITED_SECONDS = 5.0
"""A comment that was changed later than this after it was written was edited."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|section_(?:start|end):\d+:[\w.\[\]=-]*\r?|\r(?!\n)")
Checks = Literal["none", "pending", "passed", "failed"]
_STATUS: dict[str, Checks] = {
    "success": "passed",
    "manual": "passed",  # everything that runs by itself is done
    "failed": "failed",
    "canceled": "pending",  # superseded, or stopped by a person: it says nothing of the commit
    "skipped": "none",
}


async def news_of(
    calls: Calls,
    people: People,
    key: ItemKey,
    after: str,
    head: str,
    labels: WorkLabels,
    assignee: str,
    strip: Strip,
) -> ItemNews | ForgeRefusal:
    """What changed since `after`; `head` is the commit whose checks are asked for."""
    item = await calls.get(Item, path_of(key))
    if isinstance(item, ForgeRefusal):
        gone = ItemNews(wanted=False, why=text("gitlab.gone", item=str(key)))
        return gone if item.kind == "gone" else item
    request = item if key.kind == "request" else await _request_of(calls, people, head)
    if isinstance(request, ForgeRefusal):
        return request
    said: list[Said] = []
    places = {path_of(key)} | ({f"/merge_requests/{request.iid}"} if request else set[str]())
    for place in sorted(places):
        more = await _new_words(calls, people, place, after, strip)
        if isinstance(more, ForgeRefusal):
            return more
        said += more
    checks, failed = await _checks(calls, head, request) if head else ("none", ())
    if isinstance(checks, ForgeRefusal):
        return checks
    why = _unwanted(key, item, labels, assignee)
    return ItemNews(
        wanted=not why,
        why=why,
        said=tuple(sorted(said, key=lambda each: moment(each.time))),
        checks=checks,
        failed=failed,
        merged=request is not None and request.state == "merged",
        closed=request is not None and key.kind == "issue" and request.state == "closed",
    )


def _unwanted(key: ItemKey, item: Item, labels: WorkLabels, assignee: str) -> Text:
    if item.moved_to_id is not None:
        return text("gitlab.moved", item=str(key))
    if item.state != "opened":
        return text("gitlab.closed", item=str(key))
    if not set(item.labels).intersection(our_labels(labels)):
        return text("gitlab.no_label", item=str(key))
    if assignee and not item.is_assigned_to(assignee):
        return text("gitlab.unassigned", item=str(key), name=assignee)
    return NO_TEXT


async def _request_of(calls: Calls, people: People, head: str) -> Item | ForgeRefusal | None:
    """Our merge request that holds the commit `head`, with its pipeline."""
    if not head:
        return None
    found = await calls.first(Item, f"/repository/commits/{head}/merge_requests")
    if isinstance(found, ForgeRefusal):
        return None if found.kind == "gone" else found
    ours = [each for each in found if each.author and each.author.id == people.me.id]
    if not ours:
        return None
    newest = max(ours, key=lambda each: (each.state == "opened", each.iid))
    return await calls.get(Item, f"/merge_requests/{newest.iid}")


async def _new_words(
    calls: Calls, people: People, place: str, after: str, strip: Strip
) -> tuple[Said, ...] | ForgeRefusal:
    notes: list[Note] = []
    async for rows in calls.pages(Note, f"{place}/notes", {"sort": "desc", "order_by": "created_at"}):
        if isinstance(rows, ForgeRefusal):
            return rows
        new = [note for note in rows if moment(note.created_at) > moment(after)]
        notes += new
        if len(new) < len(rows):
            break
    edited = {str(note.id) for note in notes if _is_edited(note)}
    said = await said_in(people, notes, strip)
    if isinstance(said, ForgeRefusal):
        return said
    return tuple(
        each.model_copy(update={"trusted": False}) if each.id in edited else each for each in said[0]
    )


def _is_edited(note: Note) -> bool:
    later = moment(note.updated_at) - moment(note.created_at)
    return later.total_seconds() > _EDITED_SECONDS


async def _checks(
    calls: Calls, head: str, request: Item | None
) -> tuple[Checks | ForgeRefusal, tuple[FailedCheck, ...]]:
    pipeline = await _pipeline(calls, head, request)
    if pipeline is None or isinstance(pipeline, ForgeRefusal):
        return pipeline or "none", ()
    checks = _STATUS.get(pipeline.status, "pending")
    if checks != "failed":
        return checks, ()
    jobs = await calls.first(Job, f"/pipelines/{pipeline.id}/jobs", {"scope[]": "failed"})
    if isinstance(jobs, ForgeRefusal):
        return jobs, ()
    red = [job for job in jobs if not job.allow_failure][:MOST_JOBS]
    return checks, tuple(await asyncio.gather(*(_failed(calls, job) for job in red)))


async def _pipeline(calls: Calls, head: str, request: Item | None) -> Pipeline | ForgeRefusal | None:
    """The pipeline of `head`: that of the request, which may have run on what it would be when merged."""
    if request is not None and request.sha == head and request.head_pipeline is not None:
        return request.head_pipeline
    found = await calls.first(Pipeline, "/pipelines", {"sha": head, "order_by": "id", "sort": "desc"})
    if isinstance(found, ForgeRefusal):
        return None if found.kind in ("gone", "forbidden") else found  # a project without pipelines
    return found[0] if found else None


async def _failed(calls: Calls, job: Job) -> FailedCheck:
    log = await calls.tail(f"/jobs/{job.id}/trace", SHOWN_OF_A_JOB)
    said = str(log.message) if isinstance(log, ForgeRefusal) else _COLOURS.sub("", log)
    return FailedCheck(name=job.name, text=said, url=job.web_url or "")
