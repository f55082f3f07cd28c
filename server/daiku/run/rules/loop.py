"""The one async loop: decide, perform, record, until the run is finished."""

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
    Answered,
    AskApproval,
    AskModel,
    AskPerson,
    Command,
    Compact,
    Finish,
    Object,
    Refuse,
    RunTools,
    TakeMove,
    Tell,
    decide,
)
from daiku.run.rules.ports import BlockedReply, Ports
from daiku.run.rules.state.condense import Condensing, file_lists
from daiku.run.rules.state.context import summary_or_fallback
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.recorder import Recorder
from daiku.run.rules.state.repetition import describe_repetition
from daiku.run.rules.state.shorten import put_in_place, superseded
from daiku.run.rules.state.state import CHECKER, State
from daiku.run.rules.verdict import ending
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
            _take(move, record, ports.agent)
        case Compact(how):
            await _condense(how, record, ports)
        case AskApproval(call, verdict, asked):
            await _ask_approval(call, verdict, asked, record, ports)
        case AskPerson(call, asked):
            await _ask_person(call, asked, record, ports)
        case Answered(call, text, unattended):
            _respond(call, ToolResult(outcome="unattended" if unattended else "done", text=text), record)
        case RunTools(calls):
            await _run_tools(calls, record, ports)
        case Refuse(call, why, "interrupted"):
            result = await ports.settle(call, record)
            _respond(call, result or ToolResult(outcome="interrupted", text=why), record)
        case Refuse(call, why, outcome):
            _respond(call, ToolResult(outcome=outcome, text=why), record)
        case Object(why):
            record(MessageEvent(role="user", text=why, agent=CHECKER, reminder="objection"))
        case Tell(remind):
            record(MessageEvent(role="user", text=Text(remind.text), agent=CHECKER, reminder=remind.reminder))
        case Finish(status, failure):
            _finish(status, failure, record)
        case _:
            assert_never(command)


async def _ask_model(record: Recorder, ports: Ports) -> None:
    seen = len(record.state.conversation.messages)
    shown: list[str] = []
    try:
        async for piece in ports.reply(record.state):
            match piece:
                case TextDelta(text):
                    shown.append(text)
                    record(Delta(text=text))
                case ThinkingDelta(text):
                    record(Thinking(text=text))
                case Restarted():
                    shown.clear()
                    record(Notice(level="warning", text=piece.reason, attempt=piece.attempt))
                case Reply(message, usage, finish):
                    shown.clear()
                    record(_to_event(message, seen, ports.agent, finish), usage, *_remarks(message, finish))
                case _:
                    assert_never(piece)
    except ContextOverflowError as error:
        await _overflowed(error, record, ports)
    except BlockedReply as blocked:
        record(blocked.usage, _consequence(blocked, record.state))
    except DaikuError as error:
        _keep_draft(shown, seen, record, ports.agent)
        record(error.failure)
    except asyncio.CancelledError:
        _keep_draft(shown, seen, record, ports.agent)
        raise


def _consequence(blocked: BlockedReply, state: State) -> Event:
    """A blocked reply is asked for again where it may be, a few times; else it ends the run."""
    if blocked.told and state.health.reminders.count("objection") < OBJECTIONS:
        return MessageEvent(role="user", text=blocked.told, agent=CHECKER, reminder="objection")
    return blocked.failure


def _take(move: Move, record: Recorder, agent: str) -> None:
    """Record a move of the run's state machine in the words of the conversation."""
    seen = len(record.state.conversation.messages)
    match move:
        case MakeCall(call, said, asks):
            reply = AssistantMessage(text=said, calls=(call,), opaque=question_metadata(asks))
            record(_to_event(reply, seen, agent), Usage())
        case EndRun(said):
            record(_to_event(AssistantMessage(text=said), seen, agent), Usage())
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


def _remarks(message: AssistantMessage, finish: FinishReason) -> tuple[Notice, ...]:
    """What a person must know of how a reply ended, where the reply itself does not tell."""
    if finish == "length":
        said = text("run.cut_off")
    elif finish == "content_filter":
        said = text("run.refused")
    elif not message.text.strip() and not message.calls:
        said = text("run.no_words")
    else:
        told = message.opaque.get("daiku")
        said = from_json("", told.get("remark")) if isinstance(told, dict) else ""
    return (Notice(level="warning", text=said),) if said else ()


def _keep_draft(shown: list[str], seen: int, record: Recorder, agent: str) -> None:
    """What was shown before the stream broke stays on record as a draft; its calls do not."""
    if shown:
        draft = Text("".join(shown))
        record(MessageEvent(role="assistant", text=draft, agent=agent, seen=seen, partial=True))


async def _overflowed(error: ContextOverflowError, record: Recorder, ports: Ports) -> None:
    how = ports.rules.condense(record.state, refused=True)
    if how is None:
        record(error.failure)
    else:
        await _condense(how, record, ports)


async def _condense(how: Condensing, record: Recorder, ports: Ports) -> None:
    """Record the results that are shortened, then the summary of what is no longer kept, where there is to be one."""
    if how.pruned is not None:
        record(how.pruned)
    if how.kept is not None:
        await _summarise(how.kept, how.size, record, ports)


async def _summarise(kept: int, size: int, record: Recorder, ports: Ports) -> None:
    rules, messages = ports.rules, record.state.conversation.messages
    start = len(messages) - kept
    reading = rules.window().reading
    read, changed = file_lists(record.state, start, reading)
    old = put_in_place(messages, superseded(messages, start, reading))[:start]
    summary, usage = "", None
    with suppress(DaikuError):  # a plain summary does as well
        summary, usage = await ports.summarise(old)
    state = record.state
    compacted = Compacted(
        summary=summary_or_fallback(summary, old),
        kept=kept + len(state.conversation.messages) - len(messages),  # what was said meanwhile stays too
        before_tokens=size,
        files_read=read,
        files_changed=changed,
    )
    after = rules.prefix() + rules.tokens(apply(state, compacted).conversation.messages)
    record(
        *((usage,) if usage is not None else ()),
        compacted.model_copy(update={"after_tokens": after}),
        Notice(level="info", text=text("run.condensed", count=len(old))),
    )


async def _ask_approval(
    call: ToolCall, verdict: Verdict, asked: ApprovalAsked | None, record: Recorder, ports: Ports
) -> None:
    if asked is None:
        began = perf_counter()
        tried = await ports.trial(call, record) if verdict.tries else NO_TEXT
        if isinstance(tried, ToolResult):
            shown = str((tried.data or {}).get("output", ""))
            record(_called(call), *((ToolOutput(id=call.id, text=shown),) if shown else ()))
            _answer(_response(call, tried, int((perf_counter() - began) * 1000)), record)
            return
        preview = await ports.preview(call, record)
        if preview is None:  # now that it is seen, it need not be asked about: the guard allows it
            return
        if isinstance(preview, ToolResult):
            _respond(call, preview, record)
            return
        asked = ApprovalAsked(
            approval_id=long_id("appr"),
            kind=verdict.kind,
            tool=call.tool,
            args=call.args,
            preview=preview.text,
            why=show_hidden(joined("clauses", [preview.why or verdict.why, tried])),
            call_id=call.id,
            remember=preview.remember,
            hunks=preview.hunks,
        )
        record(asked)
    elif verdict.kind == "edit":  # a resumed run: the guard has not seen the edit yet and may allow it now
        preview = await ports.preview(call, record)
        if isinstance(preview, ToolResult):
            _respond(call, preview, record)
        if preview is None or isinstance(preview, ToolResult):
            return
        if asked.approval_id in record.state.questions.decisions:
            return  # the user answered while the edit was looked at
    given = await ports.approval(asked)
    if given.approval_id not in record.state.questions.decisions:
        record(given)


async def _ask_person(call: ToolCall, asked: InputAsked | None, record: Recorder, ports: Ports) -> None:
    if asked is None:
        choices = call.args.get("choices")
        said = [str(call.args.get("question", "")), *map(str, choices if isinstance(choices, list) else ())]
        messages = record.state.conversation.messages
        reply = next(m for m in reversed(messages) if isinstance(m, AssistantMessage))
        question, *offered = map(show_hidden, question_of(reply.opaque) or said)
        asked = InputAsked(
            input_id=long_id("input"), question=question, choices=tuple(offered), call_id=call.id
        )
        record(asked)
    given = await ports.answer(asked)
    if given.input_id not in record.state.questions.answers:
        record(given)


async def _run_tools(calls: tuple[ToolCall, ...], record: Recorder, ports: Ports) -> None:
    """Side by side, but answered in their order: the same work gives the same journal."""
    record(*(_called(call) for call in calls if call.id not in record.state.calls.started))
    if len(calls) == 1:
        _answer(await _run_tool(calls[0], record, ports), record)
        return
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_tool(call, record, ports)) for call in calls]
        for task in tasks:
            _answer(await task, record)


async def _run_tool(call: ToolCall, record: Recorder, ports: Ports) -> ToolResponse:
    began = perf_counter()
    result = await ports.call(call, record)
    if result.plain is not None and is_referred_to(
        call.id, (*record.state.calls.pending, *record.state.calls.preset)
    ):
        result = result.model_copy(update={"data": {**(result.data or {}), PLAIN: result.plain}})
    return _response(call, result, int((perf_counter() - began) * 1000))


def _respond(call: ToolCall, result: ToolResult, record: Recorder) -> None:
    """Answer a call that is not carried out (or was interrupted: then its start is on record)."""
    response = _response(call, result, 0)
    if call.id in record.state.calls.started:
        _answer(response, record)
    else:
        _answer(response, record, _called(call))


def _answer(response: ToolResponse, record: Recorder, *before: Event) -> None:
    """Record what came of a call, and tell the person too where the model is told that it repeats itself."""
    state = record.state
    found = (
        describe_repetition(apply(state, response).health.trail, state.request.limits.max_repeats)
        if len(state.calls.pending) == 1
        else ""
    )
    record(*before, response, *((Notice(level="warning", text=found),) if found else ()))


def _called(call: ToolCall) -> ToolCallEvent:
    return ToolCallEvent(id=call.id, tool=call.tool, args=call.args, reasoning=call.reasoning)


def _response(call: ToolCall, result: ToolResult, duration_ms: int) -> ToolResponse:
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
    state, left = record.state, ""
    if status == "completed" and state.plans.last and state.request.asks_model:  # a driven run says so itself
        from daiku.team.rules.proof.gate import open_notice  # when used

        left = open_notice(state.plans.all)
    record(
        *(() if failure is None else (failure,)),
        *((Notice(level="warning", text=left),) if left else ()),
        *ending(state, status),
    )
