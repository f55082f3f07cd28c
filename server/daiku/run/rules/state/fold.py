"""What each event makes of a run's state: a pure, total fold over its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import TypeVar, assert_never

from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    MessageEvent,
    Notice,
    PlanDeleted,
    PlanEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, Todo
from daiku.domain.labels import Aside
from daiku.domain.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from daiku.domain.work.handovers import PlanMade
from daiku.domain.work.plans import Plan
from daiku.run.rules.state.context import (
    FileNames,
    is_rules,
    open_todo,
    render_prompt,
    review_note,
    rules_message,
    summary_message,
)
from daiku.run.rules.state.environment import changed_facts, render_environment, with_environment
from daiku.run.rules.state.lessons import (
    new_lessons,
    news_of,
    not_in,
    retold,
    retold_lessons,
    with_citations,
    with_lessons,
    with_recalled,
)
from daiku.run.rules.state.repetition import add_edit
from daiku.run.rules.state.shorten import put_in_place
from daiku.run.rules.state.state import NOTHING, Calls, Conversation, Plans, Request, State
from daiku.run.rules.state.turns import PROGRESS, add_message, add_response, say
from daiku.team.rules.plans.transitions import format_progress_note
from daiku.team.rules.proof.attempts import note_edit, note_nested, note_response
from daiku.team.rules.proof.evidence import (
    record_call,
    record_checkpoint,
    record_edit,
    record_handoff,
    record_undo,
)
from daiku.texts.text import Text
from daiku.tools.rules.web.research import gather

K = TypeVar("K")
V = TypeVar("V")

UNBOUND: Mapping[str, int] = MappingProxyType({"max_rounds": 0, "max_repeats": 0, "max_tool_errors": 0})
"""Limits that mean a model's turns: what no model is asked for bounds itself."""
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
        case PlanEvent() | PlanDeleted():
            return _change_plans(state, event)
        case Aside():
            return state
        case MessageEvent():
            research = gather(state.research, event)
            return add_message(with_citations(state._replace(research=research), event), event)
        case ToolCallEvent():
            return _begin_call(state, event)
        case ToolResponse():
            return _end_call(state, event)
        case Usage():
            return _add_usage(state, event)
        case Edit():
            return _record_edit(state, event)
        case Notice():
            return _add_facts(_add_rules(state, event), event)
        case CheckpointEvent():
            return state._replace(done=record_checkpoint(state.done, event))
        case Review() | Restored():
            return _undo(state, event)
        case HandoffStart():
            nested = state.nested._replace(open=_with(state.nested.open, event.call_id, event))
            return state._replace(nested=nested)
        case HandoffEnd():
            return _hand_back(state, event)
        case ApprovalAsked() | ApprovalGiven() | InputAsked() | InputGiven():
            return _add_question(state, event)
        case Compacted():
            return _compact(state, event)
        case Pruned():
            return _shorten(state, event)
        case Todo():
            return state._replace(todo=event.items, attempts=state.attempts._replace(has_todo=True))
        case Failure():
            return state._replace(failure=event)
        case RunStarted():
            return _start(state, event)
        case RunFinished():
            return _close_calls(state)._replace(finished=event)
        case _:
            assert_never(event)


def _begin_call(state: State, event: ToolCallEvent) -> State:
    return state._replace(calls=state.calls._replace(started=_with(state.calls.started, event.id, event)))


def _end_call(state: State, event: ToolResponse) -> State:
    call = state.calls.started.get(event.id)
    done = state.done if call is None else record_call(state.done, call, event)
    attempts = note_response(state.attempts, call, event, len(done.commands))
    research = gather(state.research, event)
    return add_response(state._replace(done=done, attempts=attempts, research=research), event)


def _record_edit(state: State, event: Edit) -> State:
    health = state.health._replace(trail=add_edit(state.health.trail, event))
    attempts = note_edit(state.attempts, event, len(state.done.commands))
    return state._replace(health=health, done=record_edit(state.done, event), attempts=attempts)


def _with(old: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    return MappingProxyType({**old, key: value})


def _change_plans(state: State, event: PlanEvent | PlanDeleted) -> State:
    if isinstance(event, PlanEvent):
        return state._replace(plans=Plans(_with_plan(state.plans.all, event.plan), event.plan.plan_id))
    plans = tuple(plan for plan in state.plans.all if plan.plan_id != event.plan_id)
    return state._replace(plans=Plans(plans, state.plans.last if state.plans.last != event.plan_id else ""))


def _with_plan(plans: tuple[Plan, ...], plan: Plan) -> tuple[Plan, ...]:
    if any(p.plan_id == plan.plan_id for p in plans):
        return tuple(plan if p.plan_id == plan.plan_id else p for p in plans)
    return (*plans, plan)


def _start(state: State, event: RunStarted) -> State:
    """A new run of the session: what was said before, the plans and the rules stay."""
    before, plans = _close_calls(state).conversation, state.plans.all
    progress = format_progress_note(plans)
    text = event.told or event.prompt
    asked = _asked(event, before, (f"{PROGRESS}{progress}" if progress else "", open_todo(state.todo)))
    recalled = news_of(before.recalled, event.recalled)
    learnt = new_lessons(before.lessons, event.lessons)
    asked = with_lessons(with_recalled(asked, recalled), not_in(text, learnt), before.lessons)
    given = event.brief.plan if event.brief is not None else None
    return State(
        request=Request(
            begun=True,
            asks_model=not (event.driven or event.calls),
            prompt=event.prompt,
            text=text if len(text) <= KEPT_REQUEST else event.prompt,
            mode=event.mode,
            model=event.model,
            limits=event.limits.model_copy(update=UNBOUND) if event.driven else event.limits,
            asked_limits=event.limits,
            rounds_before=event.rounds_before,
            brief=event.brief,
            lessons=event.lessons,
            may_edit=event.may_edit,
            wording=event.prompt if event.wording is None else event.wording,
        ),
        conversation=Conversation(
            messages=(*before.messages, asked),
            start=len(before.messages),
            progress=progress,
            rules=before.rules,
            environment=event.environment or before.environment,
            tokens=before.tokens,
            counted=before.counted,
            files_read=before.files_read,
            files_changed=before.files_changed,
            recalled=(*before.recalled, *recalled),
            lessons=(*before.lessons, *learnt),
        ),
        calls=Calls(preset=event.calls),
        plans=Plans(plans if given is None else _with_plan(plans, given)),
        todo=state.todo,
        tainted=state.tainted or event.tainted,
        foreign=state.foreign | ({""} if event.tainted else frozenset()),
    )


def _asked(event: RunStarted, before: Conversation, notes: tuple[str, ...]) -> UserMessage:
    """The request with what it points at, the `notes` of earlier runs, and what has changed around it."""
    told = render_prompt(event.told or event.prompt, event.context)
    asked = UserMessage(text="\n\n".join([told, *(note for note in notes if note)]), images=event.images)
    return with_environment(asked, changed_facts(before.environment, event.environment), before.environment)


def _add_question(state: State, event: ApprovalAsked | ApprovalGiven | InputAsked | InputGiven) -> State:
    """A question to the person, under its call, or the answer, under the question's id."""
    known = state.questions
    match event:
        case ApprovalAsked():
            known = known._replace(approvals=_with(known.approvals, event.call_id, event))
        case ApprovalGiven():
            known = known._replace(decisions=_with(known.decisions, event.approval_id, event))
        case InputAsked():
            known = known._replace(inputs=_with(known.inputs, event.call_id, event))
        case InputGiven():
            known = known._replace(answers=_with(known.answers, event.input_id, event))
    return state._replace(questions=known)


def _add_usage(state: State, usage: Usage) -> State:
    spent = state.spending
    if state.request.asks_model and not spent.rounds:  # a router's: nothing of the conversation was asked yet
        return state._replace(
            spending=spent._replace(usage=spent.usage.plus(usage), own=spent.own.plus(usage))
        )
    return state._replace(
        spending=spent._replace(usage=spent.usage.plus(usage), own=spent.own.plus(usage)),
        conversation=state.conversation._replace(
            tokens=usage.prompt_tokens + usage.completion_tokens, counted=len(state.conversation.messages)
        ),
    )


def _hand_back(state: State, event: HandoffEnd) -> State:
    """What a nested run did and used is its parent's too, and a plan that it made is known here."""
    made = (event.handover.plan,) if isinstance(event.handover, PlanMade) else ()
    changed = (*event.plans, *made)
    nested, plans, spending = state.nested, state.plans, state.spending
    return state._replace(
        done=record_handoff(state.done, event),
        attempts=note_nested(state.attempts, event, len(state.done.commands)),
        nested=nested._replace(
            open=MappingProxyType({k: v for k, v in nested.open.items() if k != event.call_id}),
            returned=(*nested.returned, event),
            rounds=nested.rounds + event.rounds,
        ),
        spending=spending
        if event.usage is None
        else spending._replace(usage=spending.usage.plus(event.usage)),
        plans=Plans(reduce(_with_plan, changed, plans.all), changed[-1].plan_id) if changed else plans,
        tainted=state.tainted or event.tainted,
        foreign=state.foreign | ({""} if event.tainted else frozenset()),
        unattended=state.unattended or event.unattended,
    )


def _add_rules(state: State, event: Notice) -> State:
    """Rules of a folder join the conversation like a word of the person's: not between calls and results."""
    if not event.rules:
        return state
    rules = {**state.conversation.rules, **{each.path: each for each in event.rules}}
    conversation = state.conversation._replace(rules=MappingProxyType(rules))
    return say(state._replace(conversation=conversation), rules_message(event.rules))


def _add_facts(state: State, event: Notice) -> State:
    """What has changed around a run that is gone on with is told like the rules of a folder."""
    told = state.conversation
    news = changed_facts(told.environment, event.environment)
    if not news:
        return state
    known = state._replace(conversation=told._replace(environment=event.environment))
    return say(known, UserMessage(text=render_environment(news, changed=True), kind="note"))


def _undo(state: State, event: Review | Restored) -> State:
    """The model is told what the person took back: its own edits are no longer what it remembers."""
    note = review_note(event)
    if not note:
        return state
    paths = [event.path] if isinstance(event, Review) else [file.path for file in event.files]
    return say(state._replace(done=record_undo(state.done, paths)), UserMessage(text=note, kind="note"))


def _compact(state: State, event: Compacted) -> State:
    told = state.conversation
    kept = told.messages[len(told.messages) - event.kept :] if event.kept else ()
    rules = (rules_message(tuple(told.rules.values())),) if told.rules else ()
    latest = tuple(m for m in kept if not is_rules(m))
    request = state.request.text if not state.finished else ""
    files = FileNames(event.files_read, event.files_changed)
    summary = summary_message(event.summary, request, state.plans.all, files, state.todo)
    head = with_recalled(with_environment(summary, told.environment), retold(told.recalled, latest))
    again, held = retold_lessons(told.lessons, state.request.lessons, latest)
    messages = (with_lessons(head, again), *rules, *latest)
    return state._replace(
        conversation=told._replace(
            messages=messages,
            start=0,
            tokens=event.after_tokens,
            counted=len(messages),
            files_read=event.files_read,
            files_changed=event.files_changed,
            lessons=held,
        )
    )


def _shorten(state: State, event: Pruned) -> State:
    told = state.conversation
    messages = put_in_place(told.messages, event.results)
    return state._replace(
        conversation=told._replace(messages=messages, tokens=event.after_tokens, counted=len(messages))
    )


def _close_calls(state: State) -> State:
    """Mark open calls as not carried out, and keep what was shown of a cut-off reply."""
    told, pending = state.conversation, state.calls.pending
    draft = (AssistantMessage(text=Text(told.draft)),) if told.draft else ()
    if not (draft or pending or told.queued):
        return state
    open_calls = tuple(
        ToolMessage(call_id=c.id, tool=c.tool, outcome=None, text=NOT_CARRIED_OUT) for c in pending
    )
    messages = (*told.messages, *draft, *open_calls, *told.queued)
    return state._replace(
        conversation=told._replace(messages=messages, queued=(), draft=""),
        calls=state.calls._replace(pending=(), started=NOTHING) if pending or told.queued else state.calls,
    )
