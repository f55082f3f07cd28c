"""Fold of messages and tool results into a run's state."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from daiku.domain.events import MessageEvent, Reminder, ToolResponse
from daiku.domain.messages import AssistantMessage, Image, ToolMessage, UserMessage, is_own
from daiku.domain.work.plans import Plan
from daiku.edits.rules.matching.refusal import SHOWS_LINES
from daiku.run.rules.calls.refs import fill_refs, is_referred_to, plain_text
from daiku.run.rules.state.repetition import (
    RepetitionHistory,
    add_reply,
    add_result,
    close_turn,
    repetition_note,
)
from daiku.run.rules.state.state import CHECKER, PERSON, WORKER, Calls, Conversation, Health, State
from daiku.team.rules.plans.transitions import format_progress_note
from daiku.team.rules.proof.evidence import find_exit_code
from daiku.texts.text import NO_TEXT, Text
from daiku.tools.rules.web.research import read_shown_sources

OUTCOMES = frozenset({"exitCode", "report", SHOWS_LINES})
"""Keys of a result's data that show that the call was executed."""
PROGRESS = "How the plans stand now:\n"


def add_message(state: State, event: MessageEvent) -> State:
    """Return the state after one more message."""
    if event.role == "user":
        return _add_user(state, event)
    if event.partial:
        return state._replace(conversation=state.conversation._replace(draft=event.text))
    return _add_reply(state, event)


def queue_message(state: State, message: UserMessage) -> State:
    """Return the state with a message to the model, queued while calls are pending."""
    conversation = state.conversation
    if state.calls.pending:
        return state._replace(conversation=conversation._replace(queued=(*conversation.queued, message)))
    return state._replace(conversation=conversation._replace(messages=(*conversation.messages, message)))


def _add_user(state: State, event: MessageEvent) -> State:
    kind = "checker" if event.agent in (CHECKER, WORKER) else "person"
    conversation, health = state.conversation, state.health
    if event.reminder == "cut_off":
        conversation = conversation._replace(half=conversation.text)
    if event.agent == PERSON:  # new input: later repetition is no loop
        conversation = conversation._replace(steering=(*conversation.steering, event.text))
        health = health._replace(trail=RepetitionHistory())
    elif event.agent == CHECKER:
        health = health._replace(reminders=(*health.reminders, event.reminder or "objection"))
    note = repetition_note(health.trail, state.request.limits.max_repeats)
    message = UserMessage(text=f"{event.text}\n\n{note}" if note else event.text, kind=kind)
    return queue_message(state._replace(conversation=conversation, health=health), message)


def _add_reply(state: State, event: MessageEvent) -> State:
    conversation_before, request, spending = state.conversation, state.request, state.spending
    reply = AssistantMessage(text=event.text, thinking=event.thinking, calls=event.calls, opaque=event.opaque)
    seen = len(conversation_before.messages) if event.seen is None else event.seen
    later_messages = tuple(m for m in conversation_before.messages[seen:] if isinstance(m, UserMessage))
    earlier_messages = (*conversation_before.messages[:seen], reply)
    health = state.health._replace(trail=add_reply(state.health.trail, event.text, calls=bool(event.calls)))
    calls = state.calls
    if event.calls:
        health = health._replace(reminders=_without("unfinished", state.health.reminders), reply_worked=False)
        calls = calls._replace(pending=event.calls)
        conversation = conversation_before._replace(
            messages=earlier_messages,
            queued=(*conversation_before.queued, *later_messages),
            text=event.text
            if request.asks_model
            else conversation_before.text,  # text next to calls is not the answer
            draft="",
            half=NO_TEXT,
            finish=event.finish,
        )
    else:
        answer = (
            _join_halves(conversation_before.half, event.text) if conversation_before.half else event.text
        )
        conversation = conversation_before._replace(
            messages=(*earlier_messages, *later_messages),
            text=answer,
            draft="",
            half=NO_TEXT,
            finish=event.finish,
        )
    is_model_reply = request.asks_model and not is_own(reply)
    return state._replace(
        conversation=conversation,
        calls=calls,
        health=health,
        spending=spending._replace(rounds=spending.rounds + is_model_reply),
    )


def _join_halves(half: str, rest: str) -> Text:
    from daiku.texts.rules.words import join_continuation  # when used

    return Text(join_continuation(half, rest))


def _without(reminder: Reminder, reminders: tuple[Reminder, ...]) -> tuple[Reminder, ...]:
    return tuple(each for each in reminders if each != reminder)


def add_response(state: State, event: ToolResponse) -> State:
    """Return the state after the result of one more call."""
    pending = tuple(
        fill_refs(call, event.id, event.result, event.data) if event.ok else call
        for call in state.calls.pending
        if call.id != event.id
    )
    health = _health_after(state, event, last=not pending)
    return state._replace(
        conversation=_conversation_after(state, event, health, last=not pending),
        calls=_with_preset_result(state.calls, event)._replace(
            pending=pending,
            started=MappingProxyType({k: v for k, v in state.calls.started.items() if k != event.id}),
        ),
        health=health,
        tainted=state.tainted or event.untrusted,
        foreign=state.foreign | ({event.tool} if event.untrusted else frozenset()),
        unattended=state.unattended or event.outcome == "unattended",
    )


def _conversation_after(state: State, event: ToolResponse, health: Health, *, last: bool) -> Conversation:
    from daiku.edits.rules.changes.diagnostics import count_new_problems  # when used

    conversation = state.conversation
    note = repetition_note(health.trail, state.request.limits.max_repeats) if last else ""
    progress = format_progress_note(state.plans.all) if last else conversation.progress
    plan_note = (
        f"{PROGRESS}{progress}" if _has_plan_change(state.plans.all, event, conversation.progress) else ""
    )
    message = ToolMessage(
        call_id=event.id,
        tool=event.tool,
        ok=event.ok,
        outcome=event.outcome,
        new_problems=count_new_problems(event.data),
        exit_code=find_exit_code(event.data),
        whole=str((event.data or {}).get("whole", "")),
        text="\n\n".join(part for part in (event.result, plan_note, note) if part)
        if plan_note or note
        else event.result,
        sources=read_shown_sources(event),
        images=tuple(Image(media_type=i.media_type, data=i.data) for i in event.images),
        untrusted=event.untrusted,
    )
    messages = (*conversation.messages, message)
    return conversation._replace(
        progress=progress,
        messages=(*messages, *conversation.queued) if last else messages,
        queued=() if last else conversation.queued,
    )


def _has_plan_change(plans: Sequence[Plan], event: ToolResponse, told_progress: str) -> bool:
    """Return True if a plan differs from what the model was told; a plan in the result itself does not count."""
    plan_in_result = (event.data or {}).get("planId")
    known_lines = told_progress.splitlines()
    return any(
        line not in known_lines
        for plan in plans
        if plan.plan_id != plan_in_result
        for line in [format_progress_note([plan])]
        if line
    )


def _with_preset_result(calls: Calls, event: ToolResponse) -> Calls:
    """Return the calls with this result inserted into the arguments of preset ones that use it."""
    if not event.ok or not calls.preset:
        return calls
    results = calls.preset_results
    if is_referred_to(event.id, calls.preset):
        results = {**results, event.id: plain_text(event.result, event.data)}
    preset = tuple(fill_refs(call, event.id, event.result, event.data) for call in calls.preset)
    return calls._replace(preset=preset, preset_results=results)


def _health_after(state: State, event: ToolResponse, *, last: bool) -> Health:
    """Return the progress after the result; a reply is judged with its last result."""
    was_executed, health = _was_executed(event), state.health
    call = next((c for c in state.calls.pending if c.id == event.id), None)
    trail = add_result(health.trail, call, event, carried_out=was_executed)
    has_success = health.reply_worked or was_executed
    failed_replies = health.failed_replies
    return Health(
        trail=close_turn(trail) if last else trail,
        failed_replies=failed_replies if not last else 0 if has_success else failed_replies + 1,
        reply_worked=has_success,
        reminders=_without("errors", health.reminders) if has_success else health.reminders,
    )


def _was_executed(event: ToolResponse) -> bool:
    """Return True if the call was executed; a failed command or a rejection counts as executed."""
    if event.outcome in ("done", "rejected") or (event.outcome == "unattended" and event.tool == "user/ask"):
        return True
    return event.data is not None and not OUTCOMES.isdisjoint(event.data)
