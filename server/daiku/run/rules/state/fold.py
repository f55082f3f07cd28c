"""Fold of a run's events into its state. Pure and total."""

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
from daiku.run.rules.state.condense import replace_results
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
    exclude_quoted,
    new_lessons,
    new_memories,
    select_repeated_lessons,
    select_repeated_memories,
    with_citations,
    with_lessons,
    with_recalled,
)
from daiku.run.rules.state.repetition import add_edit
from daiku.run.rules.state.state import NOTHING, Calls, Conversation, Plans, Request, State
from daiku.run.rules.state.turns import PROGRESS, add_message, add_response, queue_message
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
from daiku.tools.rules.web.research import fold_research

K = TypeVar("K")
V = TypeVar("V")

UNBOUND: Mapping[str, int] = MappingProxyType({"max_rounds": 0, "max_repeats": 0, "max_tool_errors": 0})
"""Limits on model replies, lifted for runs that use no model."""
NOT_CARRIED_OUT = "The run ended before this was carried out."
KEPT_REQUEST = 16_000
"""Characters of a stage's prompt above which compaction keeps only the user's request."""


def fold(events: Iterable[Event], start: State | None = None) -> State:
    """Return the state after `events`."""
    state = start or State()
    for event in events:
        state = apply(state, event)
    return state


def apply(state: State, event: Event) -> State:
    """Return the state after one more event. Total: every event is handled, none raises."""
    match event:
        case PlanEvent() | PlanDeleted():
            return _change_plans(state, event)
        case Aside():
            return state
        case MessageEvent():
            research = fold_research(state.research, event)
            return add_message(with_citations(state._replace(research=research), event), event)
        case ToolCallEvent():
            return _begin_call(state, event)
        case ToolResponse():
            return _end_call(state, event)
        case Usage():
            return _add_usage(state, event)
        case Edit():
            return _add_edit(state, event)
        case Notice():
            return _add_facts(_add_rules(state, event), event)
        case CheckpointEvent():
            return state._replace(done=record_checkpoint(state.done, event))
        case Review() | Restored():
            return _undo(state, event)
        case HandoffStart():
            nested = state.nested._replace(open=_with_item(state.nested.open, event.call_id, event))
            return state._replace(nested=nested)
        case HandoffEnd():
            return _add_nested_result(state, event)
        case ApprovalAsked() | ApprovalGiven() | InputAsked() | InputGiven():
            return _add_question(state, event)
        case Compacted():
            return _compact(state, event)
        case Pruned():
            return _replace_results(state, event)
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
    return state._replace(
        calls=state.calls._replace(started=_with_item(state.calls.started, event.id, event))
    )


def _end_call(state: State, event: ToolResponse) -> State:
    call = state.calls.started.get(event.id)
    done = state.done if call is None else record_call(state.done, call, event)
    attempts = note_response(state.attempts, call, event, len(done.commands))
    research = fold_research(state.research, event)
    return add_response(state._replace(done=done, attempts=attempts, research=research), event)


def _add_edit(state: State, event: Edit) -> State:
    health = state.health._replace(trail=add_edit(state.health.trail, event))
    attempts = note_edit(state.attempts, event, len(state.done.commands))
    return state._replace(health=health, done=record_edit(state.done, event), attempts=attempts)


def _with_item(old: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
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
    """Return the state of a new run of the session; conversation, plans, and rules of earlier runs stay."""
    conversation, plans = _close_calls(state).conversation, state.plans.all
    progress = format_progress_note(plans)
    text = event.told or event.prompt
    message = _build_request_message(
        event, conversation, (f"{PROGRESS}{progress}" if progress else "", open_todo(state.todo))
    )
    new_recalled = new_memories(conversation.recalled, event.recalled)
    new_lesson_versions = new_lessons(conversation.lessons, event.lessons)
    message = with_lessons(
        with_recalled(message, new_recalled), exclude_quoted(text, new_lesson_versions), conversation.lessons
    )
    brief_plan = event.brief.plan if event.brief is not None else None
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
            messages=(*conversation.messages, message),
            start=len(conversation.messages),
            progress=progress,
            rules=conversation.rules,
            environment=event.environment or conversation.environment,
            tokens=conversation.tokens,
            counted=conversation.counted,
            files_read=conversation.files_read,
            files_changed=conversation.files_changed,
            recalled=(*conversation.recalled, *new_recalled),
            lessons=(*conversation.lessons, *new_lesson_versions),
        ),
        calls=Calls(preset=event.calls),
        plans=Plans(plans if brief_plan is None else _with_plan(plans, brief_plan)),
        todo=state.todo,
        tainted=state.tainted or event.tainted,
        foreign=state.foreign | ({""} if event.tainted else frozenset()),
    )


def _build_request_message(event: RunStarted, before: Conversation, notes: tuple[str, ...]) -> UserMessage:
    """Return the request with its context, `notes` of earlier runs, and changes of the environment."""
    prompt = render_prompt(event.told or event.prompt, event.context)
    message = UserMessage(text="\n\n".join([prompt, *(note for note in notes if note)]), images=event.images)
    return with_environment(message, changed_facts(before.environment, event.environment), before.environment)


def _add_question(state: State, event: ApprovalAsked | ApprovalGiven | InputAsked | InputGiven) -> State:
    """Add a question to the user, by call, or an answer, by the question's id."""
    questions = state.questions
    match event:
        case ApprovalAsked():
            questions = questions._replace(approvals=_with_item(questions.approvals, event.call_id, event))
        case ApprovalGiven():
            questions = questions._replace(
                decisions=_with_item(questions.decisions, event.approval_id, event)
            )
        case InputAsked():
            questions = questions._replace(inputs=_with_item(questions.inputs, event.call_id, event))
        case InputGiven():
            questions = questions._replace(answers=_with_item(questions.answers, event.input_id, event))
    return state._replace(questions=questions)


def _add_usage(state: State, usage: Usage) -> State:
    spending = state.spending
    if state.request.asks_model and not spending.rounds:  # the router's usage, before the first request
        return state._replace(
            spending=spending._replace(usage=spending.usage.plus(usage), own=spending.own.plus(usage))
        )
    return state._replace(
        spending=spending._replace(usage=spending.usage.plus(usage), own=spending.own.plus(usage)),
        conversation=state.conversation._replace(
            tokens=usage.prompt_tokens + usage.completion_tokens, counted=len(state.conversation.messages)
        ),
    )


def _add_nested_result(state: State, event: HandoffEnd) -> State:
    """Add the effects, usage, and plan of a nested run to its parent's state."""
    new_plans = (event.handover.plan,) if isinstance(event.handover, PlanMade) else ()
    all_changed = (*event.plans, *new_plans)
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
        plans=Plans(reduce(_with_plan, all_changed, plans.all), all_changed[-1].plan_id)
        if all_changed
        else plans,
        tainted=state.tainted or event.tainted,
        foreign=state.foreign | ({""} if event.tainted else frozenset()),
        unattended=state.unattended or event.unattended,
    )


def _add_rules(state: State, event: Notice) -> State:
    """Add rules of a folder to the conversation like a user message, not between calls and results."""
    if not event.rules:
        return state
    rules = {**state.conversation.rules, **{each.path: each for each in event.rules}}
    conversation = state.conversation._replace(rules=MappingProxyType(rules))
    return queue_message(state._replace(conversation=conversation), rules_message(event.rules))


def _add_facts(state: State, event: Notice) -> State:
    """Add changes of a resumed run's environment to the conversation."""
    conversation = state.conversation
    changes = changed_facts(conversation.environment, event.environment)
    if not changes:
        return state
    updated = state._replace(conversation=conversation._replace(environment=event.environment))
    return queue_message(updated, UserMessage(text=render_environment(changes, changed=True), kind="note"))


def _undo(state: State, event: Review | Restored) -> State:
    """Tell the model which of its edits the user undid."""
    note = review_note(event)
    if not note:
        return state
    paths = [event.path] if isinstance(event, Review) else [file.path for file in event.files]
    return queue_message(
        state._replace(done=record_undo(state.done, paths)), UserMessage(text=note, kind="note")
    )


def _compact(state: State, event: Compacted) -> State:
    conversation = state.conversation
    kept = conversation.messages[len(conversation.messages) - event.kept :] if event.kept else ()
    rules = (rules_message(tuple(conversation.rules.values())),) if conversation.rules else ()
    kept_messages = tuple(m for m in kept if not is_rules(m))
    request = state.request.text if not state.finished else ""
    files = FileNames(event.files_read, event.files_changed)
    summary = summary_message(event.summary, request, state.plans.all, files, state.todo)
    head = with_recalled(
        with_environment(summary, conversation.environment),
        select_repeated_memories(conversation.recalled, kept_messages),
    )
    repeated, contained = select_repeated_lessons(conversation.lessons, state.request.lessons, kept_messages)
    messages = (with_lessons(head, repeated), *rules, *kept_messages)
    return state._replace(
        conversation=conversation._replace(
            messages=messages,
            start=0,
            tokens=event.after_tokens,
            counted=len(messages),
            files_read=event.files_read,
            files_changed=event.files_changed,
            lessons=contained,
        )
    )


def _replace_results(state: State, event: Pruned) -> State:
    conversation = state.conversation
    messages = replace_results(conversation.messages, event.results)
    return state._replace(
        conversation=conversation._replace(
            messages=messages, tokens=event.after_tokens, counted=len(messages)
        )
    )


def _close_calls(state: State) -> State:
    """Mark open calls as not run, and keep the shown part of an interrupted reply."""
    conversation, pending = state.conversation, state.calls.pending
    draft = (AssistantMessage(text=Text(conversation.draft)),) if conversation.draft else ()
    if not (draft or pending or conversation.queued):
        return state
    open_calls = tuple(
        ToolMessage(call_id=c.id, tool=c.tool, outcome=None, text=NOT_CARRIED_OUT) for c in pending
    )
    messages = (*conversation.messages, *draft, *open_calls, *conversation.queued)
    return state._replace(
        conversation=conversation._replace(messages=messages, queued=(), draft=""),
        calls=state.calls._replace(pending=(), started=NOTHING)
        if pending or conversation.queued
        else state.calls,
    )
