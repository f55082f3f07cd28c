"""Requests for runs: from a client, or to continue a run that ended early."""

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
    """A client's request for a run. Empty fields mean: settings, a new session, the complete prompt."""

    text: str
    session: str | None = None
    mode: Mode = "act"
    model: str = ""
    agent: str | Agent = "coordinator"
    """The agent's name, or an agent of the calling program."""
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()
    limits: RunLimits | None = None
    approvals: ApprovalMode = "ask"
    attended: bool = True
    """True if a user can answer approvals that `approvals` does not grant; never with `none`."""
    calls: tuple[ToolCall, ...] = ()
    told: str = ""
    """Replaces `text` in the prompt of an agent that has no template of its own."""
    brief: Brief | None = None
    """Input for a stage or the team."""
    grant: EditGrant | None = None
    """The edit that the user requested at a place in the editor; a resumed run asks for approval."""
    cursor: Cursor | None = None
    """Position of the user's cursor in the editor."""
    lessons: tuple[Lesson, ...] | None = None
    """Lessons that the run receives. None: search the playbook for `text`."""
    tainted: bool = False
    """True if `text` contains untrusted content; then nothing counts as requested by the user."""
    title: str = ""
    """Title of a new session. Empty: the first line of `text`."""
    wording: str | None = None
    """The user's own words in `text`, if a template surrounds them."""


async def fit_images(request: RunRequest) -> RunRequest:
    """Return the request with images in a form that model services accept.

    Raises UsageError if one is unusable.
    """
    if not request.images:
        return request
    from daiku.models.history.pictures import fit_pictures  # when used

    fitted = await fit_pictures(request.images)
    if why := next((each.problem for each in fitted if each.problem), None):
        raise UsageError(Failure(kind="usage", message=text("picture.cannot_send", why=why)))
    images = tuple(Image(media_type=each.media_type, data=each.data) for each in fitted)
    return replace(request, images=images)


async def locate_grant(grant: EditGrant | None, workspace: Workspace) -> EditPlace | None:
    """Return the granted place in the file's current text, None without grant or if the file is unreadable."""
    if grant is None:
        return None
    from daiku.edits.rules.changes.scope import find_edit_place  # when used

    try:
        name = workspace.relative(workspace.locate(grant.uri))
        return find_edit_place(name, (await workspace.read(grant.uri)).text, grant.range)
    except DaikuError:
        return None


def with_paths(items: tuple[ContextItem, ...], workspace: Workspace) -> tuple[ContextItem, ...]:
    """Return the items with workspace-relative paths, which a model can pass to a tool."""
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


RULE_FAILURES = ("guardrail", "handoff_depth")
"""Kinds of failures by a rule, which a continued run would repeat."""


def continue_request(own: Sequence[Chunk], state: State) -> RunRequest | None:
    """Return the request that continues a run with the chunks `own`, in a session at `state`.

    None if a rule ended the run, or none of its preset calls are left.
    """
    from daiku.domain.work.handovers import Brief  # when used

    start = own[0].event
    assert isinstance(start, RunStarted), "a run begins with its start"
    calls = _remaining_calls(start.calls, state)
    if (start.calls and not calls) or (state.failure is not None and state.failure.kind in RULE_FAILURES):
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
    """Return the last run of a session that continues `run`; `run` itself if none does."""
    unfinished = {
        c.run for c in chunks if isinstance(c.event, RunFinished) and not has_answer(c.event.status)
    }
    starts = [(c.run, c.event) for c in chunks if isinstance(c.event, RunStarted) and c.parent is None]
    for (earlier, start), (later, continuation) in pairwise(starts):
        if earlier == run and run in unfinished and continuation.prompt == start.prompt:
            run = later
    return run


def _remaining_calls(calls: Sequence[ToolCall], state: State) -> tuple[ToolCall, ...]:
    """Return the preset calls that were not completed, with new ids."""
    completed = {
        m.call_id for m in state.conversation.messages if isinstance(m, ToolMessage) and m.outcome == "done"
    }
    return tuple(
        call.model_copy(update={"id": long_id("call")}) for call in calls if call.id not in completed
    )
