"""Drive one run from the terminal: show it or write JSON, answer its questions, return its exit code."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import click

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalKind,
    Event,
    InputAsked,
    Notice,
    RunFinished,
    RunStarted,
    ToolResponse,
)
from daiku.domain.held import Bullet
from daiku.domain.runs import ClientApprovals, RunResult, verdict_note
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.ask.approvals import ask_approval, ask_question
from daiku.fronts.cli.display.show import Show, usage_text
from daiku.fronts.cli.display.term import Terminal, human_stream, safe
from daiku.fronts.cli.interrupts import on_interrupt
from daiku.fronts.cli.main import (
    CANCELLED,
    FAILED,
    USAGE,
    WriteFailed,
    complain,
    silence_broken_pipe,
    write_json,
    write_output,
)
from daiku.library.fronts import App, Listener
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.terminal import locale_of, localize, say

LIMIT, NO_APPROVAL, UNVERIFIED = 3, 4, 5
LEFT_UNDONE = ("plan", "tool")
"""Failure kinds of the work itself; with an unattended run the missing approval is the cause."""
SHOWN_COMMAND = 120
"""Maximum characters of a command in the notice that it was ended."""
Asked: TypeAlias = ApprovalAsked | InputAsked
Start = Callable[[Listener], Awaitable[RunResult]]


@dataclass(slots=True)
class _StreamEnd:
    """State of a run's stream that determines the exit code."""

    run: str = ""
    killed: bool = False
    unread: bool = False
    write_error: str = ""
    asked: dict[str, ApprovalKind] = field(default_factory=dict[str, ApprovalKind])
    """Kind of each requested approval, by call id."""
    refused: set[str] = field(default_factory=set[str])
    """Ids of calls that were denied because nobody could be asked."""

    def note_approval(self, event: Event) -> None:
        """Record an approval request, or a call that was denied because nobody could be asked."""
        if isinstance(event, ApprovalAsked):
            self.asked[event.call_id] = event.kind
        elif isinstance(event, ToolResponse) and event.outcome == "unattended":
            self.refused.add(event.id)


@dataclass(frozen=True, slots=True)
class RunMode:
    """Options for following a run.

    `attended`: the user can be asked. `steer`: typed lines are sent to the model. `drafts`: a drafted plan
    counts as unfinished work.
    """

    approvals: ClientApprovals
    attended: bool
    as_json: bool = False
    steer: bool = False
    drafts: bool = False


async def drive(app: App, start: Start, how: RunMode) -> tuple[int, RunResult]:
    """Run to the end, and return the exit code and the result. Raises DaikuError if nothing was started."""
    people, end, language = human_stream(), _StreamEnd(), locale_of(os.environ)
    show = Show(people, talking=how.steer, omits_answer=not (people.live or sys.stdout.isatty()))
    began = time.monotonic()
    asking: asyncio.Queue[Asked] = asyncio.Queue()
    stopping: set[asyncio.Future[RunResult]] = set()

    def listen(chunk: Chunk) -> None:
        if isinstance(chunk.event, RunStarted) and chunk.parent is None:
            end.run = chunk.run
        end.run = end.run or chunk.run
        end.note_approval(chunk.event)
        localized = chunk.in_language(language)
        if not how.as_json:
            show(localized)
        elif not end.unread and not _write_chunk(chunk, end):
            end.unread = True
            stopping.add(asyncio.ensure_future(app.runs.cancel(end.run)))
        if how.attended and isinstance(localized.event, Asked):
            asking.put_nowait(localized.event)

    with keyboard.restore_terminal():
        app.runs.learner.defers_reflections = True  # do not delay the prompt
        running = asyncio.ensure_future(start(listen))
        answering = asyncio.create_task(_converse(app, end, asking, show, people, steer=how.steer))
        restore = _cancel_on_interrupt(app, running, end, show)
        try:
            result = (await _wait_for_result(running, end)).in_language(language)
        finally:
            restore()
            answering.cancel()
            show.stop()
    if not end.run and how.as_json:
        _write_recorded_end(app, result, end)
    if end.write_error:
        return complain(say("error.output", why=end.write_error), "", FAILED), result
    code = exit_code(result, how)
    if not end.run:
        people.write(people.paint(say("already_ended"), "dim") + "\n")
    elif not how.as_json:
        _print_usage(result, people, time.monotonic() - began)
    hint = _suggest_approval(app, end, how) if end.run and code == NO_APPROVAL else ""
    _conclude(result, code, how, hint, is_shown=bool(end.run) and sys.stdout.isatty())
    await app.runs.learner.settle(reflections=False)
    if not how.as_json:
        _show_lessons(app, result, show, language)
    return code, result


@asynccontextmanager
async def end_background_commands() -> AsyncGenerator[None]:
    """End background commands when the block ends, and name those that were still running."""
    from daiku.tools.shell.background import stop_jobs_at_exit  # when used

    async with stop_jobs_at_exit() as jobs:
        yield
        people = human_stream()
        for job in jobs:
            if job.process.exit_code is None:
                line = say("ended_background", command=truncate_middle(job.command, SHOWN_COMMAND))
                people.write(people.paint(f"! {safe(line)}", "yellow") + "\n")


def _show_lessons(app: App, result: RunResult, show: Show, language: str) -> None:
    """Show the lessons learned from the run, after its answer."""
    for chunk in app.journal.chunks(result.session_id, result.last_seq):
        if isinstance(chunk.event, Bullet | Notice):
            show(chunk.in_language(language))


def exit_code(result: RunResult, how: RunMode) -> int:
    """Return the process exit code for a run's result (PROTOCOL 1)."""
    kind = result.error.kind if result.error is not None else ""
    match result.status:
        case "completed" if result.unattended:
            return NO_APPROVAL
        case "completed":
            return FAILED if has_open_steps(result, how) else 0
        case "completed_unverified":
            return NO_APPROVAL if result.unattended else UNVERIFIED
        case "failed" if result.unattended and kind in LEFT_UNDONE:
            return NO_APPROVAL
        case "failed":
            return USAGE if kind == "usage" else FAILED
        case "limit":
            return LIMIT
        case "cancelled" | "paused":
            return CANCELLED


def has_open_steps(result: RunResult, how: RunMode) -> bool:
    """Return True if an unattended run leaves steps of its plan unfinished."""
    plan = result.plan
    if plan is None or how.attended or (plan.status == "draft" and not how.drafts):
        return False
    return plan.done < plan.total


def _write_chunk(chunk: Chunk, end: _StreamEnd) -> bool:
    """Write the chunk as a line of JSON; return False if that fails."""
    try:
        write_json(chunk.json())
    except (BrokenPipeError, WriteFailed) as error:
        if isinstance(error, WriteFailed):
            end.write_error = str(error)
        silence_broken_pipe()
        return False
    return True


async def _wait_for_result(running: asyncio.Future[RunResult], end: _StreamEnd) -> RunResult:
    try:
        return await running
    except asyncio.CancelledError:
        if end.killed:  # before the run started: it is not in the journal
            raise click.Abort from None
        raise


def _write_recorded_end(app: App, result: RunResult, end: _StreamEnd) -> None:
    """Write the last recorded chunk of a run that had already ended."""
    for chunk in reversed(app.journal.chunks(result.session_id)):
        if chunk.run == result.run_id and isinstance(chunk.event, RunFinished):
            _write_chunk(chunk, end)
            return


async def _converse(
    app: App, end: _StreamEnd, asking: asyncio.Queue[Asked], show: Show, people: Terminal, *, steer: bool
) -> None:
    """Ask the run's questions one by one, and read typed lines between them."""
    question = asyncio.create_task(asking.get())
    line: asyncio.Task[str | None] | None = None
    try:
        while True:
            if steer and line is None:
                line = asyncio.create_task(keyboard.read_line())
            await asyncio.wait({t for t in (question, line) if t}, return_when=asyncio.FIRST_COMPLETED)
            if line is not None and line.done():
                steer = await _steer(app, end, line.result(), show)
                line = None
            if question.done():
                if line is not None:  # the keyboard must be free for the question
                    line.cancel()
                    await asyncio.wait({line})
                    line = None
                await _ask_user(app, end, question.result(), show, people)
                question = asyncio.create_task(asking.get())
    finally:
        for task in (question, line):
            if task is not None:
                task.cancel()


async def _steer(app: App, end: _StreamEnd, text: str | None, show: Show) -> bool:
    """Send a typed line to the model; return False at the end of input."""
    if text is None:
        return False
    try:
        if text.strip() in ("/stop", "/quit"):
            await app.runs.cancel(end.run)
        elif text.strip():
            await app.runs.steer(end.run, text.strip())
            show.line(f"  ({say('steered')})")
    except DaikuError as error:  # the run has just ended
        show.line(f"  ({safe(localize(error.failure.message))})")
    return True


async def _ask_user(app: App, end: _StreamEnd, question: Asked, show: Show, people: Terminal) -> None:
    if isinstance(question, ApprovalAsked):
        reply = await ask_approval(question, show, people)
        await app.runs.approve(end.run, question.approval_id, reply.decision, reply.feedback, reply.hunks)
    else:
        await app.runs.answer(end.run, question.input_id, await ask_question(question, show, people))


def _cancel_on_interrupt(
    app: App, running: asyncio.Future[RunResult], end: _StreamEnd, show: Show
) -> Callable[[], None]:
    """Cancel the run at the first Ctrl-C and end the process at the second.

    Return a function that removes the handlers.
    """
    tasks: set[asyncio.Task[RunResult]] = set()

    def handle_interrupt() -> None:
        if end.killed:
            show.stop()
            os._exit(CANCELLED)
        end.killed = True
        show.line(say("cancelling"))
        if end.run:
            tasks.add(asyncio.ensure_future(app.runs.cancel(end.run)))
        else:
            running.cancel()

    return on_interrupt(handle_interrupt)


def _print_usage(result: RunResult, people: Terminal, seconds: float) -> None:
    used = result.usage.prompt_tokens or result.usage.completion_tokens
    if used and (text := usage_text(result.usage, seconds)):
        people.write(people.paint(text, "dim") + "\n")


def _suggest_approval(app: App, end: _StreamEnd, how: RunMode) -> str:
    """Return the option that would grant the approval that was missing."""
    kinds = {*end.asked.values()}
    if end.refused - end.asked.keys():  # denied without a request: no level covers it
        return say("no_approval.all")
    own = app.runs.services.policy("act", how.approvals, False).own
    if "network" in kinds and not own:
        return say("no_approval.all.untrusted")
    if how.approvals == "none" and kinds <= {"edit"}:
        return say("no_approval.none")
    if how.approvals in ("none", "edits") and kinds <= {"edit", "command"}:
        return say("no_approval.edits")
    if how.approvals != "all":
        return say("no_approval.sandbox")
    if "network" in kinds:
        return say("no_approval.all.foreign")
    return say("no_approval.all.mcp" if "mcp" in kinds else "no_approval.all")


def _conclude(result: RunResult, code: int, how: RunMode, hint: str, *, is_shown: bool) -> None:
    """Write the answer unless the terminal shows it, and one line for an unsuccessful run."""
    if result.text and not how.as_json and not is_shown:
        write_output(result.text.rstrip("\n") + "\n")
    verdict = localize(verdict_note(result.reasons, unchecked=result.unchecked))
    go_on = "" if how.steer else f"({say('go_on', session=result.session_id)})"
    if code == NO_APPROVAL:
        complain(say("no_approval"), hint or go_on, code)
    elif result.status == "completed_unverified":
        complain(verdict, go_on, code)
    elif result.unchecked and not how.as_json:
        people = human_stream()
        people.write(people.paint(verdict, "dim") + "\n")
    elif result.status == "failed" and result.error is not None:
        complain(result.error.message, result.error.hint, code)
    elif result.status == "limit":
        reached = result.error.message if result.error else say("limit")
        hint = result.error.hint if result.error else ""
        complain(reached, f"{hint} {go_on}".strip(), code)
    elif result.status == "cancelled":
        complain(say("cancelled"), go_on, code)
    elif result.status == "paused":
        complain(say("cancelled"), f"({say('resume_with', run=result.run_id)})", code)
    elif result.status == "failed":
        complain("failed", "", code)
    elif result.plan is not None and code == FAILED:
        plan = result.plan
        unfinished = say(
            "plan.left", name=safe(plan.name), done=plan.done, all=plan.total, failed=plan.failed
        )
        complain(unfinished, go_on, code)
