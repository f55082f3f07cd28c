"""The async loop: decide, perform, record, until the run is finished."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, assert_never

from daiku.domain.base import long_id
from daiku.domain.errors import ContextOverflowError, DaikuError, Failure
from daiku.domain.events import (
    ApprovalAsked,
    Delta,
    Event,
    InputAsked,
    MessageEvent,
    Notice,
    Thinking,
    ToolCallEvent,
    ToolOutput,
    ToolResponse,
)
from daiku.domain.held import Compacted
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    Reply,
    Restarted,
    TextDelta,
    ThinkingDelta,
    Usage,
    question_metadata,
    question_of,
)
from daiku.domain.runs import TerminalStatus
from daiku.domain.tools import ToolCall, ToolResult
from daiku.run.rules.calls.refs import PLAIN, is_referred_to
from daiku.run.rules.decide import (
    OBJECTIONS,
    AskApproval,
    AskModel,
    AskPerson,
    Command,
    Compact,
    Correct,
    Finish,
    Refuse,
    RunTools,
    SendReminder,
    TakeMove,
    UseAnswer,
    decide,
)
from daiku.run.rules.ports import BlockedReply, Ports
from daiku.run.rules.state.condense import Condensing, file_lists, replace_results, shorten_superseded
from daiku.run.rules.state.context import summary_or_fallback
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.machine import EndRun, MakeCall, Move, Recorder
from daiku.run.rules.state.repetition import describe_repetition
from daiku.run.rules.state.state import CHECKER, State
from daiku.run.rules.verdict import end_events
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import NO_TEXT, Text, from_json, joined, text

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Verdict


async def run(record: Recorder, ports: Ports) -> State:
    """Run until finished or paused, and return the state. Raises what a port raises, except DaikuError."""
    while record.state.finished is None and not ports.paused():
        await _perform(decide(record.state, ports.rules), record, ports)
    return record.state


async def _perform(command: Command, record: Recorder, ports: Ports) -> None:
    match command:
        case AskModel():
            await _ask_model(record, ports)
        case TakeMove(move):
            _record_move(move, record, ports.agent)
        case Compact(how):
            await _condense(how, record, ports)
        case AskApproval(call, verdict, asked):
            await _ask_approval(call, verdict, asked, record, ports)
        case AskPerson(call, asked):
            await _ask_person(call, asked, record, ports)
        case UseAnswer(call, text, unattended):
            _respond(call, ToolResult(outcome="unattended" if unattended else "done", text=text), record)
        case RunTools(calls):
            await _run_tools(calls, record, ports)
        case Refuse(call, why, "interrupted"):
            result = await ports.settle(call, record)
            _respond(call, result or ToolResult(outcome="interrupted", text=why), record)
        case Refuse(call, why, outcome):
            _respond(call, ToolResult(outcome=outcome, text=why), record)
        case Correct(why):
            record(MessageEvent(role="user", text=why, agent=CHECKER, reminder="objection"))
        case SendReminder(remind):
            record(MessageEvent(role="user", text=Text(remind.text), agent=CHECKER, reminder=remind.reminder))
        case Finish(status, failure):
            _finish(status, failure, record)
        case _:
            assert_never(command)


async def _ask_model(record: Recorder, ports: Ports) -> None:
    seen = len(record.state.conversation.messages)
    shown_texts: list[str] = []
    try:
        async for piece in ports.reply(record.state):
            match piece:
                case TextDelta(text):
                    shown_texts.append(text)
                    record(Delta(text=text))
                case ThinkingDelta(text):
                    record(Thinking(text=text))
                case Restarted():
                    shown_texts.clear()
                    record(Notice(level="warning", text=piece.reason, attempt=piece.attempt))
                case Reply(message, usage, finish):
                    shown_texts.clear()
                    record(
                        _to_event(message, seen, ports.agent, finish), usage, *_reply_notices(message, finish)
                    )
                case _:
                    assert_never(piece)
    except ContextOverflowError as error:
        await _handle_overflow(error, record, ports)
    except BlockedReply as blocked:
        record(blocked.usage, _blocked_reply_event(blocked, record.state))
    except DaikuError as error:
        _keep_draft(shown_texts, seen, record, ports.agent)
        record(error.failure)
    except asyncio.CancelledError:
        _keep_draft(shown_texts, seen, record, ports.agent)
        raise


def _blocked_reply_event(blocked: BlockedReply, state: State) -> Event:
    """Return a correction for a retry while some are left, else the failure."""
    if blocked.told and state.health.reminders.count("objection") < OBJECTIONS:
        return MessageEvent(role="user", text=blocked.told, agent=CHECKER, reminder="objection")
    return blocked.failure


def _record_move(move: Move, record: Recorder, agent: str) -> None:
    """Record a move of the run's state machine as a message."""
    seen = len(record.state.conversation.messages)
    match move:
        case MakeCall(call, message_text, question):
            reply = AssistantMessage(text=message_text, calls=(call,), opaque=question_metadata(question))
            record(_to_event(reply, seen, agent), Usage())
        case EndRun(message_text):
            record(_to_event(AssistantMessage(text=message_text), seen, agent), Usage())
        case Failure():
            record(move)
        case _:
            assert_never(move)


def _to_event(
    message: AssistantMessage, seen: int, agent: str, finish: FinishReason = "stop"
) -> MessageEvent:
    """Return the event of a reply to the first `seen` messages."""
    return MessageEvent(
        role="assistant",
        text=message.text,
        agent=agent,
        thinking=message.thinking,
        calls=message.calls,
        opaque=message.opaque,
        seen=seen,
        finish=finish,
    )


def _reply_notices(message: AssistantMessage, finish: FinishReason) -> tuple[Notice, ...]:
    """Return notices about how a reply ended if its text does not show it."""
    if finish == "length":
        remark = text("run.cut_off")
    elif finish == "content_filter":
        remark = text("run.refused")
    elif not message.text.strip() and not message.calls:
        remark = text("run.no_words")
    else:
        metadata = message.opaque.get("daiku")
        remark = from_json("", metadata.get("remark")) if isinstance(metadata, dict) else ""
    return (Notice(level="warning", text=remark),) if remark else ()


def _keep_draft(shown_texts: list[str], seen: int, record: Recorder, agent: str) -> None:
    """Record the shown part of an interrupted reply as a draft, without its calls."""
    if shown_texts:
        draft = Text("".join(shown_texts))
        record(MessageEvent(role="assistant", text=draft, agent=agent, seen=seen, partial=True))


async def _handle_overflow(error: ContextOverflowError, record: Recorder, ports: Ports) -> None:
    condensing = ports.rules.condense(record.state, refused=True)
    if condensing is None:
        record(error.failure)
    else:
        await _condense(condensing, record, ports)


async def _condense(condensing: Condensing, record: Recorder, ports: Ports) -> None:
    """Record the shortened results, then the summary of old messages if there is one."""
    if condensing.pruned is not None:
        record(condensing.pruned)
    if condensing.kept is not None:
        await _summarise(condensing.kept, condensing.size, record, ports)


async def _summarise(kept: int, size: int, record: Recorder, ports: Ports) -> None:
    rules, messages = ports.rules, record.state.conversation.messages
    start = len(messages) - kept
    reading = rules.window().reading
    read, changed = file_lists(record.state, start, reading)
    old = replace_results(messages, shorten_superseded(messages, start, reading))[:start]
    summary, usage = "", None
    with suppress(DaikuError):  # falls back to a plain summary
        summary, usage = await ports.summarise(old)
    state = record.state
    compacted = Compacted(
        summary=summary_or_fallback(summary, old),
        kept=kept + len(state.conversation.messages) - len(messages),  # keeps messages that arrived meanwhile
        before_tokens=size,
        files_read=read,
        files_changed=changed,
    )
    after_tokens = rules.prefix() + rules.tokens(apply(state, compacted).conversation.messages)
    record(
        *((usage,) if usage is not None else ()),
        compacted.model_copy(update={"after_tokens": after_tokens}),
        Notice(level="info", text=text("run.condensed", count=len(old))),
    )


async def _ask_approval(
    call: ToolCall, verdict: Verdict, approval: ApprovalAsked | None, record: Recorder, ports: Ports
) -> None:
    if approval is None:
        start = perf_counter()
        trial_result = await ports.trial(call, record) if verdict.tries else NO_TEXT
        if isinstance(trial_result, ToolResult):
            output = str((trial_result.data or {}).get("output", ""))
            record(_call_event(call), *((ToolOutput(id=call.id, text=output),) if output else ()))
            _record_response(_to_response(call, trial_result, int((perf_counter() - start) * 1000)), record)
            return
        preview = await ports.preview(call, record)
        if preview is None:  # with the preview, the guard allows it
            return
        if isinstance(preview, ToolResult):
            _respond(call, preview, record)
            return
        approval = ApprovalAsked(
            approval_id=long_id("appr"),
            kind=verdict.kind,
            tool=call.tool,
            args=call.args,
            preview=preview.text,
            why=show_hidden(joined("clauses", [preview.why or verdict.why, trial_result])),
            call_id=call.id,
            remember=preview.remember,
            hunks=preview.hunks,
        )
        record(approval)
    elif verdict.kind == "edit":  # a resumed run: with a new preview the guard may allow the edit
        preview = await ports.preview(call, record)
        if isinstance(preview, ToolResult):
            _respond(call, preview, record)
        if preview is None or isinstance(preview, ToolResult):
            return
        if approval.approval_id in record.state.questions.decisions:
            return  # the user answered meanwhile
    decision = await ports.approval(approval)
    if decision.approval_id not in record.state.questions.decisions:
        record(decision)


async def _ask_person(call: ToolCall, event: InputAsked | None, record: Recorder, ports: Ports) -> None:
    if event is None:
        choices = call.args.get("choices")
        fallback = [
            str(call.args.get("question", "")),
            *map(str, choices if isinstance(choices, list) else ()),
        ]
        messages = record.state.conversation.messages
        reply = next(m for m in reversed(messages) if isinstance(m, AssistantMessage))
        question, *options = map(show_hidden, question_of(reply.opaque) or fallback)
        event = InputAsked(
            input_id=long_id("input"), question=question, choices=tuple(options), call_id=call.id
        )
        record(event)
    answer = await ports.answer(event)
    if answer.input_id not in record.state.questions.answers:
        record(answer)


async def _run_tools(calls: tuple[ToolCall, ...], record: Recorder, ports: Ports) -> None:
    """Run calls in parallel and record results in order, so that the same work gives the same journal."""
    record(*(_call_event(call) for call in calls if call.id not in record.state.calls.started))
    if len(calls) == 1:
        _record_response(await _run_tool(calls[0], record, ports), record)
        return
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_tool(call, record, ports)) for call in calls]
        for task in tasks:
            _record_response(await task, record)


async def _run_tool(call: ToolCall, record: Recorder, ports: Ports) -> ToolResponse:
    start = perf_counter()
    result = await ports.call(call, record)
    if result.plain is not None and is_referred_to(
        call.id, (*record.state.calls.pending, *record.state.calls.preset)
    ):
        result = result.model_copy(update={"data": {**(result.data or {}), PLAIN: result.plain}})
    return _to_response(call, result, int((perf_counter() - start) * 1000))


def _respond(call: ToolCall, result: ToolResult, record: Recorder) -> None:
    """Record the result of a call that was not run, or was interrupted."""
    response = _to_response(call, result, 0)
    if call.id in record.state.calls.started:
        _record_response(response, record)
    else:
        _record_response(response, record, _call_event(call))


def _record_response(response: ToolResponse, record: Recorder, *before: Event) -> None:
    """Record the result of a call, and a notice if the call repeats earlier ones."""
    state = record.state
    notice = (
        describe_repetition(apply(state, response).health.trail, state.request.limits.max_repeats)
        if len(state.calls.pending) == 1
        else ""
    )
    record(*before, response, *((Notice(level="warning", text=notice),) if notice else ()))


def _call_event(call: ToolCall) -> ToolCallEvent:
    return ToolCallEvent(id=call.id, tool=call.tool, args=call.args, reasoning=call.reasoning)


def _to_response(call: ToolCall, result: ToolResult, duration_ms: int) -> ToolResponse:
    return ToolResponse(
        id=call.id,
        tool=call.tool,
        ok=result.ok,
        outcome=result.outcome,
        result=f"{result.text}\n\nNote: {'; '.join(call.notes)}." if call.notes else result.text,
        duration_ms=duration_ms,
        data=result.data,
        images=result.images,
        untrusted=result.untrusted,
    )


def _finish(status: TerminalStatus, failure: Failure | None, record: Recorder) -> None:
    state, open_plan_notice = record.state, ""
    if (
        status == "completed" and state.plans.last and state.request.asks_model
    ):  # a run without a model reports this itself
        from daiku.team.rules.proof.gate import build_open_notice  # when used

        open_plan_notice = build_open_notice(state.plans.all)
    record(
        *(() if failure is None else (failure,)),
        *((Notice(level="warning", text=open_plan_notice),) if open_plan_notice else ()),
        *end_events(state, status),
    )
