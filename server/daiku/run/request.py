"""The RunRequest of a client, and the request that continues a run which ended early."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, replace
from daiku.domain.base import long_id
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import RunFinished, RunStarted
from daiku.domain.messages import Image, ToolMessage
from daiku.domain.runs import ApprovalMode, ContextItem, Cursor, EditGrant, Mode, RunLimits, has_answer
from daiku.domain.tools import ToolCall
from daiku.run.rules.outside import Workspace
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import touched_plan
from daiku.team.agent import Agent
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.domain.held import Lesson
    from daiku.domain.work.handovers import Brief
    from daiku.edits.rules.changes.scope import EditPlace

GO_ON = (
    "Go on with what was asked: it was stopped before it was done. Look at the present state first, for what was "
    "done already stands. The request was:\n\n"
)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a front asks for; empty fields mean the settings, a new session, the whole prompt."""

    text: str
    session: str | None = None
    mode: Mode = "act"
    model: str = ""
    agent: str | Agent = "coordinator"
    """Whom: by name, or an agent of one's own."""
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()
    limits: RunLimits | None = None
    approvals: ApprovalMode = "ask"
    attended: bool = True
    """Whether a person is there to be asked what `approvals` does not grant; with `none` nobody is."""
    calls: tuple[ToolCall, ...] = ()
    told: str = ""
    """What an agent without a form of its own reads in place of `text`."""
    brief: Brief | None = None
    """What a stage of work, or the team, is given besides."""
    grant: EditGrant | None = None
    """The edit that was asked for by pointing; a resumed run asks about it again."""
    cursor: Cursor | None = None
    """Where the person works in the editor."""
    lessons: tuple[Lesson, ...] | None = None
    """The lessons that the run receives; None: the playbook is searched for those that fit `text`."""
    tainted: bool = False
    """`text` holds words of strangers: nothing counts as asked for by a person, from the first call on."""
    title: str = ""
    """What a new session is called; empty: the first line of `text`."""
    wording: str | None = None
    """The users' own words in `text`, where a template surrounds them."""


async def fit_images(request: RunRequest) -> RunRequest:
    """Return the request with its pictures as model services accept them. Raises UsageError if one is unusable."""
    if not request.images:
        return request
    from daiku.models.history.pictures import fit_pictures  # when used

    fitted = await fit_pictures(request.images)
    if why := next((each.problem for each in fitted if each.problem), None):
        raise UsageError(Failure(kind="usage", message=text("picture.cannot_send", why=why)))
    images = tuple(Image(media_type=each.media_type, data=each.data) for each in fitted)
    return replace(request, images=images)


async def locate_grant(grant: EditGrant | None, workspace: Workspace) -> EditPlace | None:
    """The place that was granted, as the file stands now; None where none was or the file cannot be read."""
    if grant is None:
        return None
    from daiku.edits.rules.changes.scope import edit_place  # when used

    try:
        name = workspace.relative(workspace.locate(grant.uri))
        return edit_place(name, (await workspace.read(grant.uri)).text, grant.range)
    except DaikuError:
        return None


def with_paths(items: tuple[ContextItem, ...], workspace: Workspace) -> tuple[ContextItem, ...]:
    """The items, each file of the workspace by its path there: what a model can give to a tool."""
    return tuple(
        item if path is None else item.model_copy(update={"path": path})
        for item in items
        for path in (_path_of(item, workspace),)
    )


def _path_of(item: ContextItem, workspace: Workspace) -> str | None:
    if item.uri is None or not item.uri.startswith("file:"):
        return None
    try:
        return workspace.relative(workspace.locate(item.uri))
    except DaikuError:
        return None


DECIDED = ("guardrail", "handoff_depth")
"""Failures by a rule: whoever goes on runs into the same rule again."""


def continue_request(own: Sequence[Chunk], state: State) -> RunRequest | None:
    """Return the request that continues a run with the chunks `own`, in a session that stands at `state`.

    None if a rule ended it, or none of its preset calls are left."""
    from daiku.domain.work.handovers import Brief  # when used

    start = own[0].event
    assert isinstance(start, RunStarted), "a run begins with its start"
    calls = _left(start.calls, state)
    if (start.calls and not calls) or (state.failure is not None and state.failure.kind in DECIDED):
        return None
    again = GO_ON + start.prompt
    brief = (start.brief or Brief(request=again)).model_copy(update={"request": again})
    plan = touched_plan(state) if start.driven else None
    if plan is not None:
        brief = brief.model_copy(update={"request": start.prompt, "plan": plan})
    return RunRequest(
        text=start.prompt,
        session=own[0].session,
        mode=start.mode,
        model=start.model,
        agent=own[0].agent,
        calls=calls,
        told=again,
        brief=None if start.driven and plan is None else brief,
        tainted=start.tainted,
        wording=start.wording,
    )


def last_continuation(chunks: Sequence[Chunk], run: str) -> str:
    """Return the run of a session that goes on with `run` last; `run` itself if none does."""
    undone = {c.run for c in chunks if isinstance(c.event, RunFinished) and not has_answer(c.event.status)}
    starts = [(c.run, c.event) for c in chunks if isinstance(c.event, RunStarted) and c.parent is None]
    for (earlier, start), (later, again) in pairwise(starts):
        if earlier == run and run in undone and again.prompt == start.prompt:
            run = later
    return run


def _left(calls: Sequence[ToolCall], state: State) -> tuple[ToolCall, ...]:
    """Those of the calls that a run was handed that were not carried out, under ids of their own."""
    done = {
        m.call_id for m in state.conversation.messages if isinstance(m, ToolMessage) and m.outcome == "done"
    }
    return tuple(call.model_copy(update={"id": long_id("call")}) for call in calls if call.id not in done)
