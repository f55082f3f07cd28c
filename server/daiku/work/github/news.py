"""What is new with an item: whether it is still wanted, what people said, how the checks of its request stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from daiku.core.work.marks import mark_of
from daiku.domain.items.forge import FailedCheck, ForgeRefusal, ItemNews, Said
from daiku.domain.items.intents import REQUEST
from daiku.domain.items.item import ItemKey
from daiku.settings.config import WorkLabels
from daiku.texts.text import NO_TEXT, Text, text
from daiku.work.answers import AnyShape, moment
from daiku.work.github.calls import MAX_PAGES, PAGE, Calls, word
from daiku.work.github.reading import Account, said_since
from daiku.work.github.shapes import CheckRun, CheckRuns, Issue, Pull, Status, Statuses
from daiku.work.github.trust import Believed
from daiku.work.labels import our_labels

T = TypeVar("T")
_RED = frozenset({"failure", "timed_out", "startup_failure"})
_OPEN = frozenset({"cancelled", "action_required", "stale"})
"""Conclusions that say nothing of the commit: superseded by a newer run, or waiting for a person."""
_RED_STATUS = frozenset({"failure", "error"})
_MAX_OUTPUT = 20_000


async def news_of(
    calls: Calls, key: ItemKey, after: str, head: str, labels: WorkLabels, account: Account
) -> ItemNews | ForgeRefusal:
    """Return what changed from `after` on; a comment of that very second may come twice, with the same id."""
    issue = await calls.get(Issue, f"{calls.root}/issues/{key.name}")
    if isinstance(issue, ForgeRefusal):
        return issue
    pull = await _pull_of(calls, key, head, account)
    if isinstance(pull, ForgeRefusal):
        return pull
    said = await _said(calls, key, pull, account, after)
    if isinstance(said, ForgeRefusal):
        return said
    why = _why_unwanted(issue, labels, account)
    merged = pull is not None and bool(pull.merged_at)
    closed = pull is not None and key.kind == "issue" and pull.state != "open" and not merged
    news = ItemNews(wanted=not why, why=why, said=said, merged=merged, closed=closed)
    if not head:
        return news
    return await _with_checks(calls, head, news)


async def _pull_of(calls: Calls, key: ItemKey, head: str, account: Account) -> Pull | ForgeRefusal | None:
    """Find the request that the item is, or that we made for it: it has our mark, or its head is the commit `head`."""
    if key.kind == "request":
        return await calls.get(Pull, f"{calls.root}/pulls/{key.name}")
    if not head:
        return None
    path = f"{calls.root}/pulls?state=all&sort=created&direction=desc&per_page={PAGE}"
    mark = mark_of(str(key), REQUEST)
    for _ in range(MAX_PAGES):
        page = await calls.changed(Pull, path, "")
        if page is None or isinstance(page, ForgeRefusal):
            return page
        ours = (each for each in page.rows if each.user is not None and each.user.is_called(account.us))
        found = next((each for each in ours if each.head.sha == head or mark in (each.body or "")), None)
        if found is not None or not page.more:
            return found
        path = page.more
    return None


async def _said(
    calls: Calls, key: ItemKey, pull: Pull | None, account: Account, after: str
) -> tuple[Said, ...] | ForgeRefusal:
    """Return what people wrote on the item, and on the request that we made for it."""
    believed, found = Believed(calls), list[Said]()
    places = [key]
    if pull is not None and key.kind != "request":
        places.append(key.model_copy(update={"kind": "request", "name": str(pull.number)}))
    for place in places:
        said = await said_since(calls, place, believed, account, after)
        if isinstance(said, ForgeRefusal):
            return said
        found += said
    return tuple(sorted(found, key=lambda each: moment(each.time)))


def _why_unwanted(issue: Issue, labels: WorkLabels, account: Account) -> Text:
    """Why the item is not wanted any more; of a request of our own only that it was closed."""
    if issue.state != "open":
        return text("github.closed")
    if issue.pull_request is not None and issue.user is not None and issue.user.is_called(account.us):
        return NO_TEXT
    if account.bot and not issue.is_assigned_to(account.bot):
        return text("github.unassigned")
    if not any(issue.has_label(name) for name in our_labels(labels)):
        return text("github.unlabelled")
    return NO_TEXT


async def _with_checks(calls: Calls, head: str, news: ItemNews) -> ItemNews | ForgeRefusal:
    commit = f"{calls.root}/commits/{word(head)}"
    statuses = await _read_rows(calls, Statuses, f"{commit}/status", lambda page: page.statuses)
    if isinstance(statuses, ForgeRefusal):
        return statuses
    runs = await _read_rows(calls, CheckRuns, f"{commit}/check-runs", lambda page: page.check_runs)
    if isinstance(runs, ForgeRefusal):
        return runs
    return _judge_checks(statuses, runs, news)


async def _read_rows(
    calls: Calls, shape: type[AnyShape], path: str, rows_of: Callable[[AnyShape], Sequence[T]]
) -> list[T] | ForgeRefusal:
    """Read all rows of a list whose pages are objects that hold it."""
    all_rows: list[T] = []
    for number in range(1, MAX_PAGES + 1):
        page = await calls.get(shape, f"{path}?per_page={PAGE}&page={number}")
        if isinstance(page, ForgeRefusal):
            return page
        rows = rows_of(page)
        all_rows += rows
        if len(rows) < PAGE:
            break
    return all_rows


def _judge_checks(statuses: Sequence[Status], runs: Sequence[CheckRun], news: ItemNews) -> ItemNews:
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
        return news.model_copy(update={"checks": "pending"})
    if failed:
        return news.model_copy(update={"checks": "failed", "failed": tuple(failed)})
    return news.model_copy(update={"checks": "passed" if runs or statuses else "none"})
