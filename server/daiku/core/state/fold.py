"""What each event makes of a run's state: the fold of its events; pure and total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import TypeVar, assert_never

from daiku.core.calls.refs import filled, is_referred_to, plain_text
from daiku.core.changes.diagnostics import new_problems
from daiku.core.matching.refusal import SHOWS_LINES
from daiku.core.plans.transitions import progress_note
from daiku.core.proof.evidence import (
    did_begin,
    did_edit,
    did_hand_over,
    did_keep,
    did_respond,
    did_undo,
    exit_code_of,
)
from daiku.core.state.context import is_rules, render_prompt, rules_message, summary_message, undone_note
from daiku.core.state.repetition import Trail, closed, edited, replied, responded, told
from daiku.core.state.state import CHECKER, PERSON, State
from daiku.core.web.research import gather
from daiku.domain.errors import Failure
from daiku.domain.events import (
    AgentEnd,
    AgentStart,
    ApprovalAsked,
    ApprovalGiven,
    Bullet,
    CheckpointEvent,
    Compacted,
    Delta,
    Edit,
    Event,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    MessageEvent,
    Notice,
    PlanEvent,
    Reminder,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    Thinking,
    ToolCallEvent,
    ToolOutput,
    ToolResponse,
)
from daiku.domain.messages import AssistantMessage, Image, ToolMessage, Usage, UserMessage, is_own
from daiku.domain.work.handovers import PlanMade
from daiku.domain.work.plans import Plan

K = TypeVar("K")
V = TypeVar("V")

UNBOUND: Mapping[str, int] = MappingProxyType({"max_rounds": 0, "max_repeats": 0, "max_tool_errors": 0})
"""Limits that mean a model's turns: what no model is asked for bounds itself."""
OUTCOMES = frozenset({"exitCode", "report", SHOWS_LINES})
"""What a result's data hold when the call was carried out, whatever came of it."""
PROGRESS = "How the plans stand now:\n"
NOT_CARRIED_OUT = "The run ended before this was carried out."
KEPT_REQUEST = 16_000
"""Characters of what a stage was told that a compaction keeps as they are; of more only the request."""


def fold(events: Iterable[Event], start: State | None = None) -> State:
    """The state after `events`."""
    state = start or State()
    for event in events:
        state = apply(state, event)
    return state


def apply(state: State, event: Event) -> State:
    """The state after one more event. Total: every event is handled, none raises."""
    match event:
        case Delta() | Thinking() | ToolOutput():  # the frequent ones first
            return state
        case MessageEvent():
            return _said(state._replace(research=gather(state.research, event)), event)
        case ToolCallEvent():
            return state._replace(started=state.started | {event.id}, done=did_begin(state.done, event))
        case ToolResponse():
            research = gather(state.research, event)
            return _responded(state._replace(done=did_respond(state.done, event), research=research), event)
        case Usage():
            return _used(state, event)
        case Edit():
            return state._replace(trail=edited(state.trail, event), done=did_edit(state.done, event))
        case Notice():
            return _noticed(state, event) if event.rules else state
        case CheckpointEvent():
            return state._replace(done=did_keep(state.done, event))
        case Review() | Restored():
            return _undone(state, event)
        case AgentStart() | AgentEnd() | Bullet():
            return state
        case HandoffStart():
            return state._replace(handoffs=_with(state.handoffs, event.call_id, event))
        case HandoffEnd():
            return _handed_back(state, event)
        case ApprovalAsked():
            return state._replace(approvals=_with(state.approvals, event.call_id, event))
        case ApprovalGiven():
            return state._replace(decisions=_with(state.decisions, event.approval_id, event))
        case InputAsked():
            return state._replace(inputs=_with(state.inputs, event.call_id, event))
        case InputGiven():
            return state._replace(answers=_with(state.answers, event.input_id, event))
        case PlanEvent():
            plans = _with_plan(state.plans, event.plan)
            return state._replace(plans=plans, last_plan=event.plan.plan_id)
        case Compacted():
            return _compacted(state, event)
        case Failure():
            return state._replace(failure=event)
        case RunStarted():
            return _begun(state, event)
        case RunFinished():
            return _ended(state, event)
        case _:
            assert_never(event)


def _with(old: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    return MappingProxyType({**old, key: value})


def _with_plan(plans: tuple[Plan, ...], plan: Plan) -> tuple[Plan, ...]:
    if any(p.plan_id == plan.plan_id for p in plans):
        return tuple(plan if p.plan_id == plan.plan_id else p for p in plans)
    return (*plans, plan)


def _begun(state: State, event: RunStarted) -> State:
    progress = progress_note(state.plans)
    request = event.told or event.prompt
    said = render_prompt(request, event.context)
    asked = UserMessage(text=f"{said}\n\n{PROGRESS}{progress}" if progress else said, images=event.images)
    settled = _settled(state)
    return State(
        started_run=True,
        asks_model=not (event.driven or event.calls),
        prompt=event.prompt,
        request=request if len(request) <= KEPT_REQUEST else event.prompt,
        mode=event.mode,
        model=event.model,
        limits=event.limits.model_copy(update=UNBOUND) if event.driven else event.limits,
        asked_limits=event.limits,
        rounds_before=event.rounds_before,
        began=len(settled.messages),
        given=event.calls,
        brief=event.brief,
        messages=(*settled.messages, asked),
        plans=state.plans
        if event.brief is None or event.brief.plan is None
        else _with_plan(state.plans, event.brief.plan),
        progress=progress,
        rules=state.rules,
        tainted=state.tainted or event.tainted,
        context_tokens=state.context_tokens,
    )


def _said(state: State, event: MessageEvent) -> State:
    if event.role == "user":
        if event.agent == PERSON:  # a word from outside: what comes now is not the same again
            state = state._replace(trail=Trail(), said=(*state.said, event.text))
        elif event.agent == CHECKER:
            state = state._replace(reminders=(*state.reminders, event.reminder or "objection"))
        note = told(state.trail, state.limits.max_repeats)
        kind = "checker" if event.agent == CHECKER else "person"
        said = UserMessage(text=f"{event.text}\n\n{note}" if note else event.text, kind=kind)
        if state.pending:
            return state._replace(held=(*state.held, said))
        return state._replace(messages=(*state.messages, said))
    if event.partial:
        return state._replace(draft=event.text)
    reply = AssistantMessage(text=event.text, thinking=event.thinking, calls=event.calls, opaque=event.opaque)
    seen = len(state.messages) if event.seen is None else event.seen
    later = tuple(m for m in state.messages[seen:] if isinstance(m, UserMessage))
    before = (*state.messages[:seen], reply)
    asked = state.asks_model and not is_own(reply)
    state = state._replace(
        trail=replied(state.trail, event.text, calls=bool(event.calls)),
        draft="",
        rounds=state.rounds + asked,
    )
    if event.calls:
        return state._replace(
            reminders=_without("unfinished", state.reminders),
            messages=before,
            pending=event.calls,
            went_well=False,
            held=(*state.held, *later),
            text=event.text if state.asks_model else state.text,  # what it is about to do is no answer
        )
    return state._replace(messages=(*before, *later), text=event.text)


def _without(reminder: Reminder, told: tuple[Reminder, ...]) -> tuple[Reminder, ...]:
    return tuple(each for each in told if each != reminder)


def _responded(state: State, event: ToolResponse) -> State:
    went_well, trail = _judged(state, event)
    last = not trail.current
    note = told(trail, state.limits.max_repeats) if last else ""
    progress = progress_note(state.plans) if last else state.progress
    news = f"{PROGRESS}{progress}" if progress and progress != state.progress else ""
    message = ToolMessage(
        call_id=event.id,
        tool=event.tool,
        ok=event.ok,
        outcome=event.outcome,
        new_problems=new_problems(event.data),
        exit_code=exit_code_of(event.data),
        text="\n\n".join(part for part in (event.result, news, note) if part),
        images=tuple(Image(media_type=i.media_type, data=i.data) for i in event.images),
        untrusted=event.untrusted,
    )
    pending = tuple(
        filled(call, event.id, event.result, event.data) if event.ok else call
        for call in state.pending
        if call.id != event.id
    )
    given = tuple(filled(call, event.id, event.result, event.data) for call in state.given)
    used = state.used
    if event.ok and is_referred_to(event.id, state.given):
        used = {**used, event.id: plain_text(event.result, event.data)}
    went_well = state.went_well or went_well
    messages = (*state.messages, message)
    return state._replace(
        given=given if event.ok else state.given,
        used=used,
        progress=progress,
        messages=messages if pending else (*messages, *state.held),
        held=state.held if pending else (),
        pending=pending,
        started=state.started - {event.id},
        errors=state.errors if pending else 0 if went_well else state.errors + 1,
        reminders=_without("errors", state.reminders) if went_well else state.reminders,
        went_well=went_well,
        trail=trail,
        tainted=state.tainted or event.untrusted,
        unattended=state.unattended or event.outcome == "unattended",
    )


def _judged(state: State, event: ToolResponse) -> tuple[bool, Trail]:
    """Whether the call was carried out, and the trail with it; closed with the reply's last result."""
    carried_out = _carried_out(event)
    call = next((c for c in state.pending if c.id == event.id), None)
    trail = responded(state.trail, call, event, carried_out=carried_out)
    last = all(c.id == event.id for c in state.pending)
    return carried_out, closed(trail) if last else trail


def _carried_out(event: ToolResponse) -> bool:
    """A command that ran and failed is an outcome, a rejection is a decision: neither is a call
    that could not be carried out."""
    if event.outcome in ("done", "rejected") or (event.outcome == "unattended" and event.tool == "user/ask"):
        return True
    return event.data is not None and not OUTCOMES.isdisjoint(event.data)


def _used(state: State, event: Usage) -> State:
    used = Usage(
        model=event.model,
        prompt_tokens=event.prompt_tokens,
        completion_tokens=event.completion_tokens,
        cached_tokens=event.cached_tokens,
        cost=event.cost,
    )
    return state._replace(
        usage=state.usage.plus(used),
        context_tokens=event.prompt_tokens + event.completion_tokens,
    )


def _handed_back(state: State, event: HandoffEnd) -> State:
    """What a nested run did and used is its parent's too, and a plan that it made is known here."""
    made = (event.handover.plan,) if isinstance(event.handover, PlanMade) else ()
    changed = (*event.plans, *made)
    return state._replace(
        done=did_hand_over(state.done, event),
        returned=(*state.returned, event),
        handoffs=MappingProxyType({k: v for k, v in state.handoffs.items() if k != event.call_id}),
        nested_rounds=state.nested_rounds + event.rounds,
        usage=state.usage if event.usage is None else state.usage.plus(event.usage),
        tainted=state.tainted or event.tainted,
        plans=reduce(_with_plan, changed, state.plans),
        last_plan=changed[-1].plan_id if changed else state.last_plan,
        unattended=state.unattended or event.unattended,
    )


def _noticed(state: State, event: Notice) -> State:
    """Rules of a folder join the conversation like a word of the person's: not between calls and results."""
    rules = {**state.rules, **{each.path: each for each in event.rules}}
    state = state._replace(rules=MappingProxyType(rules))
    return _told(state, rules_message(event.rules))


def _undone(state: State, event: Review | Restored) -> State:
    """What the person took back is told to the model: its own edits are no longer what it remembers."""
    note = undone_note(event)
    if not note:
        return state
    paths = [event.path] if isinstance(event, Review) else [file.path for file in event.files]
    return _told(state._replace(done=did_undo(state.done, paths)), UserMessage(text=note, kind="note"))


def _told(state: State, said: UserMessage) -> State:
    if state.pending:
        return state._replace(held=(*state.held, said))
    return state._replace(messages=(*state.messages, said))


def _compacted(state: State, event: Compacted) -> State:
    kept = state.messages[len(state.messages) - event.kept :] if event.kept else ()
    rules = (rules_message(tuple(state.rules.values())),) if state.rules else ()
    latest = tuple(m for m in kept if not is_rules(m))
    summary = summary_message(event.summary, state.request if not state.finished else "", state.plans)
    return state._replace(
        messages=(summary, *rules, *latest),
        began=0,
        context_tokens=event.after_tokens,
    )


def _settled(state: State) -> State:
    """Every call answered: what was still open is marked as not carried out. What was shown of a reply that
    was cut off stays in the conversation: the person may speak of it."""
    if state.draft:
        said = AssistantMessage(text=state.draft)
        state = state._replace(messages=(*state.messages, said), draft="")
    if not state.pending and not state.held:
        return state
    open_calls = tuple(
        ToolMessage(call_id=c.id, tool=c.tool, outcome=None, text=NOT_CARRIED_OUT) for c in state.pending
    )
    return state._replace(
        messages=(*state.messages, *open_calls, *state.held),
        pending=(),
        held=(),
        started=frozenset(),
    )


def _ended(state: State, event: RunFinished) -> State:
    return _settled(state)._replace(finished=event)
