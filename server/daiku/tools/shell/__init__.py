"""Shell tools: run a command, run it in the background, read its output, kill it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import Field

from daiku.domain.events import Notice, ToolOutput
from daiku.domain.labels import Label
from daiku.domain.tools import UNCHANGED, ToolResult
from daiku.guard.sandbox.aside import Before
from daiku.run.rules.outside import Terminals
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import Text, joined, text
from daiku.tools.face import Face
from daiku.tools.shell.background import Jobs
from daiku.tools.shell.in_terminal import TerminalCommand, start_in_terminal
from daiku.tools.shell.preparing import (
    MAX_SECONDS,
    PreparedCommand,
    RunArgs,
    build_refusal,
    find_own_programs,
    prepare,
    wrap_in_sandbox,
)
from daiku.tools.shell.printed import (
    build_command_result,
    find_hint,
    format_news,
    format_output,
    format_reach_note,
    has_no_history,
)
from daiku.tools.shell.process import Command, Process, start
from daiku.tools.shell.protecting import ask_to_restore, is_unchanged, quarantine_changes, read_files
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure

TIMED_OUT = 124
"""Exit code of a command that exceeded its timeout, as of timeout(1)."""
UNSANDBOXED_NOTE = text("shell.no_sandbox")


class OutputArgs(Args):
    """A background command, and the seconds to wait for new output."""

    id: str = Field(description="of the command")
    wait: float = Field(default=0, ge=0, le=300, description="seconds to wait")


class KillArgs(Args):
    """A background command."""

    id: str = Field(description="of the command")


async def run(
    args: RunArgs, context: ToolContext, jobs: Jobs, terminals: Terminals | None = None
) -> ToolResult:
    """Run a command. `ok` is true if it exits with 0. `data` = {exitCode, output, durationMs}."""
    prepared = prepare(args, context)
    if isinstance(prepared, ToolResult):
        return prepared
    if prepared.state == "missing":
        context.emit(Notice(level="warning", text=UNSANDBOXED_NOTE))
    if prepared.impostors:
        names = ", ".join(prepared.impostors)
        notice = text("shell.no_environment", names=names)
        context.emit(Notice(level="warning", text=notice))
    process: Command | None = None
    try:
        wrapped = await asyncio.to_thread(wrap_in_sandbox, prepared)
        if isinstance(wrapped, ToolResult):
            return wrapped
        argv, earlier = wrapped
        if args.background:
            return _run_in_background(prepared, context, jobs, await _start(args, prepared, argv), earlier)
        before = await asyncio.to_thread(read_files, prepared.command, prepared.folder)
        if terminals is not None:
            process = await _start_in_editor(args, prepared, argv, context, terminals)
        process = process or await _start(args, prepared, argv)
    except (OSError, ValueError) as error:
        return build_refusal(f"The command could not be started: {error}")
    show: Callable[[str], None] = partial(_emit_output, context)
    sandboxed = prepared.state == "on"
    try:
        code, note = await _wait(process, show, args.timeout)
    finally:
        quarantining = quarantine_changes(earlier, jobs.aside, context, args.command, sandboxed=sandboxed)
        quarantined = await asyncio.shield(quarantining)
    quarantined = await ask_to_restore(quarantined, context)
    printed = await asyncio.to_thread(format_output, process, args, context)
    may_hint = sandboxed and (code != 0 or has_no_history(prepared))
    hint = find_hint(printed.shown, prepared) if may_hint else ""
    result = build_command_result(process, code, note, quarantined, printed, hint)
    unchanged = is_unchanged(before, await asyncio.to_thread(read_files, prepared.command, prepared.folder))
    if unchanged is None:
        return result
    return result.model_copy(update={"data": {**(result.data or {}), UNCHANGED: unchanged}})


async def _start(args: RunArgs, prepared: PreparedCommand, argv: list[str]) -> Process:
    reaped = prepared.state != "on"
    cwd, env = prepared.folder, prepared.env
    return await start(argv, cwd=cwd, env=env, stdin=args.stdin, terminal=args.terminal, reaped=reaped)


async def _start_in_editor(
    args: RunArgs, prepared: PreparedCommand, argv: list[str], context: ToolContext, terminals: Terminals
) -> TerminalCommand | None:
    cwd, env = prepared.folder, prepared.env
    return await start_in_terminal(
        terminals, context.call_id, argv, cwd=cwd, env=env, stdin=args.stdin, terminal=args.terminal
    )


def _run_in_background(
    prepared: PreparedCommand, context: ToolContext, jobs: Jobs, process: Process, earlier: Before | None
) -> ToolResult:
    job = jobs.add(
        context.session,
        prepared.command,
        process,
        partial(
            *(quarantine_changes, earlier, jobs.aside, context, prepared.command),
            sandboxed=prepared.state == "on",
        ),
    )
    started = (
        f"Started in the background as {job!r}. shell__output shows what it prints, shell__kill ends it. "
        f"It goes on when this run ends or is cancelled, until Daiku itself ends.{format_reach_note(prepared)}"
    )
    context.emit(Notice(level="info", text=text("shell.in_background", job=job)))
    return ToolResult(ok=True, text=started, data={"id": job, "pid": process.pid})


async def _wait(process: Command, show: Callable[[str], None], seconds: float) -> tuple[int, str]:
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await process.finish(show), ""
    except TimeoutError:
        if not deadline.expired():
            raise
        return TIMED_OUT, (
            f"It did not end within {seconds:g} s and was stopped with all that it had started. If it needs longer,"
            f" call again with a longer timeout (at most {MAX_SECONDS:g}) or with background: true; if it waits"
            " for input, pass it as stdin."
        )
    finally:
        await asyncio.shield(process.stop())


def _emit_output(context: ToolContext, text: str) -> None:
    context.emit(ToolOutput(id=context.call_id, text=text))


async def preview(args: RunArgs, context: ToolContext) -> Preview | ToolResult:
    """Describe the command exactly as it would run, and how."""
    prepared = prepare(args, context)
    if isinstance(prepared, ToolResult):
        return prepared
    folder = context.workspace.relative(prepared.folder)
    conditions = joined(
        "list",
        [
            text("shell.preview_in", folder=folder) if folder not in ("", ".") else "",
            text("shell.preview_background") if args.background else "",
            text("shell.preview_rights") if prepared.state != "on" else text("shell.preview_sandbox"),
        ],
    )
    lines = [show_hidden(prepared.command), text("shell.preview_how", how=conditions)]
    if programs := find_own_programs(prepared):
        lines.append(text("shell.preview_own", names=", ".join(map(show_hidden, programs))))
    if args.stdin:
        lines += [text("shell.preview_reads"), show_hidden(args.stdin)]
    return Preview(joined("lines", lines))


async def try_first(args: RunArgs, context: ToolContext, jobs: Jobs) -> ToolResult | Text:
    """Return the result of the command if it writes nothing; else the reason to ask the user."""
    from daiku.tools.shell.trying import try_reading  # when used

    return await try_reading(args, context, serving=bool(jobs.names(context.session)))


async def output(args: OutputArgs, context: ToolContext, jobs: Jobs) -> ToolResult:
    """Return the new output of a background command, and whether it is still running."""
    job = jobs.get(context.session, args.id)
    if job is None:
        return build_failure(_describe_unknown(args.id, context, jobs))
    await job.wait_for_output(args.wait)
    news, code = job.take(), job.process.exit_code
    printed = await asyncio.to_thread(format_news, args.id, news, job, context)
    text = printed.shown
    state = "It is still running." if code is None else f"It ended with exit code {code}."
    return ToolResult(
        ok=True,
        text=f"{state}\n{text.rstrip() or '(nothing new)'}",
        data={
            "running": code is None,
            "exitCode": code,
            "output": text,
            **({"whole": printed.whole} if printed.whole else {}),
        },
    )


async def kill(args: KillArgs, context: ToolContext, jobs: Jobs) -> ToolResult:
    """Kill a background command and its descendants."""
    job = jobs.get(context.session, args.id)
    if job is None:
        return build_failure(_describe_unknown(args.id, context, jobs))
    running = job.process.exit_code is None
    await job.end()
    printed = await asyncio.to_thread(format_news, args.id, job.take(), job, context)
    message = f"{'Ended' if running else 'It had ended already'}.\n{printed.shown.rstrip()}".rstrip()
    return ToolResult(ok=True, text=message, data={"whole": printed.whole} if printed.whole else None)


def _describe_unknown(name: str, context: ToolContext, jobs: Jobs) -> str:
    names = ", ".join(jobs.names(context.session)) or "none"
    return f"There is no background command {name!r}. There are: {names}."


def build_shell_tools(home: Path | None = None, terminals: Terminals | None = None) -> tuple[Tool, ...]:
    """Build the shell tools, which share one table of background commands.

    Quarantined files are stored below `home`, or without it in a temporary folder of this process.
    `terminals` are those of the editor, if any: foreground commands run there.
    """
    jobs = Jobs(home / "aside" if home else None)
    return (
        Tool(
            "shell/run", "command", RunArgs, partial(run, jobs=jobs, terminals=terminals), preview=preview, trial=partial(try_first, jobs=jobs), bounds_itself=True,
            face=Face("terminal", Label("Run", "実行"), "{command}", slow=True),
            description="Run a command line in the workspace folder: its exit code and output. To read, search and edit use the other tools.",
        ),
        Tool(
            "shell/output", "none", OutputArgs, partial(output, jobs=jobs),
            face=Face("terminal", Label("Read output", "出力を読む"), "{id}", slow=True),
            description="What a background command has printed since the last look, and if it still runs.",
        ),
        Tool(
            "shell/kill", "none", KillArgs, partial(kill, jobs=jobs),
            face=Face("debug-stop", Label("Stop process", "プロセスを終了"), "{id}", slow=True),
            description="End a background command and everything it started.",
        ),
    )  # fmt: skip
