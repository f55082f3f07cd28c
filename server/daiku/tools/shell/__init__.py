"""Commands: run one and wait, run one in the background, look at it, end it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field

from daiku.core.commands import CommandRules, Judgement, hidden, judge, seen, strip_cd
from daiku.core.cut import OUTPUT_LIMIT
from daiku.core.guard import SandboxState
from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice, ToolOutput
from daiku.domain.tools import ToolResult
from daiku.tools.sandbox import Bounds, contained, existing_protected, sandbox_state
from daiku.tools.shell.background import Jobs
from daiku.tools.shell.environment import child_environment
from daiku.tools.shell.process import Process, reaped, start
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed

DEFAULT_SECONDS = 120.0
LONGEST_SECONDS = 3600.0
TIMED_OUT = 124
"""The exit code of a command that took too long, as of timeout(1)."""
REFUSED = 126
UNSANDBOXED = (
    "There is no working sandbox here (bubblewrap): commands run with all your rights, after asking."
)


class RunArgs(Args):
    """`command` is a line for bash, run in the workspace folder. `timeout` in seconds (default 120, at
    most 3600). `background`: do not wait; shell/output and shell/kill take the id. `stdin`: text that the
    program reads. `network`: it needs the internet. `terminal`: it needs one. `sandbox`: false asks to run
    it with all rights, for what the sandbox does not let through."""

    command: str
    timeout: float = Field(default=DEFAULT_SECONDS, gt=0, le=LONGEST_SECONDS)
    background: bool = False
    stdin: str | None = None
    network: bool = False
    terminal: bool = False
    sandbox: bool = True


class OutputArgs(Args):
    """`id` of a background command; `wait` at most so many seconds for something new."""

    id: str
    wait: float = Field(default=0, ge=0, le=300)


class KillArgs(Args):
    """`id` of a background command."""

    id: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command ready to start."""

    command: str
    folder: Path
    argv: list[str]
    env: dict[str, str]
    state: SandboxState
    reaped: bool


async def run(args: RunArgs, context: ToolContext, jobs: Jobs) -> ToolResult:
    """Run a command; `ok` when it exits with 0. `data` = {exitCode, output, durationMs}."""
    prepared = prepare(args, context)
    if isinstance(prepared, ToolResult):
        return prepared
    if prepared.state == "missing":
        context.emit(Notice(level="warning", text=UNSANDBOXED))
    before = _protected_now(context)
    try:
        process = await start(
            prepared.argv,
            cwd=prepared.folder,
            env=prepared.env,
            stdin=args.stdin,
            terminal=args.terminal,
            reaped=prepared.reaped,
        )
    except (OSError, ValueError) as error:
        return _not_run(f"The command could not be started: {error}")
    if args.background:
        job = jobs.add(context.session, prepared.command, process)
        return ToolResult(
            ok=True,
            text=f"Started in the background as {job!r}. shell/output shows what it prints, shell/kill ends it.",
            data={"id": job, "pid": process.pid},
        )
    show: Callable[[str], None] = partial(_show, context)
    code, note = await _wait(process, show, args.timeout)
    new = [p for p in _protected_now(context) if p not in before]
    if new:
        context.emit(
            Notice(
                level="warning",
                text=f"The command made {', '.join(map(str, new))}: look at it before you trust it.",
            )
        )
    return _result(process, code, note, sandboxed=prepared.state == "on", network=args.network)


async def _wait(process: Process, show: Callable[[str], None], seconds: float) -> tuple[int, str]:
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            return await process.finish(show), ""
    except TimeoutError:
        if not bound.expired():
            raise
        return TIMED_OUT, f"It did not end within {seconds:g} s and was stopped with all that it had started."
    finally:
        await asyncio.shield(process.stop())


def _result(process: Process, code: int, note: str, *, sandboxed: bool, network: bool) -> ToolResult:
    seconds = time.monotonic() - process.started
    output = process.output.shown(OUTPUT_LIMIT - 1000)
    hint = "" if code == 0 or not sandboxed else _hint(output, network=network)
    head = f"Exit code {code} after {seconds:.1f} s."
    text = "\n".join(
        part for part in (f"{head} {note}".strip(), output.rstrip("\n") or "(no output)", hint) if part
    )
    return ToolResult(
        ok=code == 0, text=text, data={"exitCode": code, "output": output, "durationMs": int(seconds * 1000)}
    )


_NO_NETWORK = (
    "could not resolve host", "name resolution", "network is unreachable", "getaddrinfo", "enotfound", "eai_again",
    "name or service not known", "connection error", "failed to establish a new connection", "could not connect",
)  # fmt: skip
_NO_WRITE = ("read-only file system", "erofs")


def _hint(output: str, *, network: bool) -> str:
    low = output.lower()
    if not network and any(sign in low for sign in _NO_NETWORK):
        return "The sandbox has no network. If the command needs it, call again with network: true; the person is asked."
    if any(sign in low for sign in _NO_WRITE):
        return "The sandbox lets commands write only in the workspace and /tmp, and not to protected files (.git/hooks, .vscode, …)."
    return ""


def _show(context: ToolContext, text: str) -> None:
    context.emit(ToolOutput(id=context.call_id, text=text))


def prepare(args: RunArgs, context: ToolContext) -> Prepared | ToolResult:
    """Everything that is decided before the start; a failing result says why it cannot be run."""
    if why := hidden(args.command):
        return _not_run(f"Not run: {why}.")
    stripped = strip_cd(args.command)
    if stripped.refusal:
        return _not_run(
            f"Not run: {stripped.refusal}. Run it from there with a path, or as `cd FOLDER && …`."
        )
    roots = context.workspace.roots
    if not roots:
        return _not_run("Not run: no folder is open, so there is nowhere to run a command.")
    try:
        folder = context.workspace.locate(stripped.folder) if stripped.folder else roots[0]
    except DaikuError as error:
        return _not_run(f"Not run: {error.failure.message}")
    if not folder.is_dir():
        return _not_run(f"Not run: there is no folder {stripped.folder!r} in the workspace.")
    state = sandbox_state(context.config.sandbox)
    if state == "refused" or (not args.sandbox and context.config.sandbox.mode == "strict"):
        return _not_run(
            "Not run: the sandbox is set to strict, and there is none here. Install bubblewrap, or set sandbox.mode."
        )
    return _assemble(args, stripped.command, folder, state if args.sandbox else "off", context)


def _assemble(
    args: RunArgs, command: str, folder: Path, state: SandboxState, context: ToolContext
) -> Prepared | ToolResult:
    roots = context.workspace.roots
    judged = judge(command, rules_of(context, folder))
    network = args.network or judged.network or context.config.sandbox.network
    env = child_environment(
        os.environ, roots, network=network, hooks=not judged.read_only, venv=not judged.read_only
    )
    shell = next((s for name in ("bash", "sh") if (s := shutil.which(name, path=env["PATH"]))), None)
    if shell is None:
        return _not_run("Not run: there is neither bash nor sh on PATH.")
    argv = [shell, *(("--noprofile", "--norc") if shell.endswith("bash") else ()), "-c", command]
    if state != "on":
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  # the system's own
        return Prepared(command, folder, reaped(argv), env, state, reaped=True)
    bounds = Bounds(
        roots=roots,
        writable=tuple(Path(p).expanduser() for p in context.config.sandbox.write)
        + _repositories(judged, roots),
        network=network,
        read_only=judged.read_only,
        protected=not judged.protected,
        git=judged.programs == ("git",),
    )
    return Prepared(command, folder, contained(argv, bounds, folder), env, state, reaped=False)


def rules_of(context: ToolContext, folder: Path) -> CommandRules:
    """What the guard judged the command by, as far as running it depends on it."""

    def resolve(path: str) -> str | None:
        try:
            return context.workspace.relative(context.workspace.locate(str(folder / path)))
        except (DaikuError, OSError, ValueError):
            return None

    return CommandRules(
        resolve=resolve,
        roots=(str(folder), *map(str, context.workspace.roots)),
        home=str(Path.home()),
        contained=True,
    )


def _repositories(judged: Judgement, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where git keeps a work tree's data, when that is outside the workspace."""
    if "git" not in judged.programs or judged.read_only:
        return ()
    found: list[Path] = []
    for root in roots:
        git = next((g for up in (root, *root.parents) if (g := up / ".git").exists()), None)
        if git is None:
            continue
        if git.is_file():
            text = git.read_text(encoding="utf-8", errors="replace")
            pointed = (git.parent / text.removeprefix("gitdir:").strip()).resolve()
            git = pointed.parent.parent if pointed.parent.name == "worktrees" else pointed
        if (
            git.is_dir()
            and (git / "HEAD").is_file()
            and not any(root == git or root in git.parents for root in roots)
        ):
            found.append(git)
    return tuple(found)


def _protected_now(context: ToolContext) -> set[Path]:
    return {place for root in context.workspace.roots for place in existing_protected(root.resolve())}


def _not_run(text: str) -> ToolResult:
    return ToolResult(ok=False, text=text, data={"exitCode": REFUSED, "output": text, "durationMs": 0})


async def preview(args: RunArgs, context: ToolContext) -> Preview | ToolResult:
    """The command exactly as it would be run, nothing hidden, and how."""
    prepared = prepare(args, context)
    if isinstance(prepared, ToolResult):
        return prepared
    lines = [seen(prepared.command)]
    where = context.workspace.relative(prepared.folder)
    notes = [
        f"in {where}" if where not in ("", ".") else "",
        "in the background" if args.background else "",
        "with all your rights (no sandbox)" if prepared.state != "on" else "in the sandbox",
    ]
    lines.append("# " + ", ".join(note for note in notes if note))
    if args.stdin:
        lines += ["# it reads:", seen(args.stdin)]
    return Preview("\n".join(lines))


async def output(args: OutputArgs, context: ToolContext, jobs: Jobs) -> ToolResult:
    """What a background command printed since last looked at, and whether it still runs."""
    job = jobs.get(context.session, args.id)
    if job is None:
        return failed(_unknown(args.id, context, jobs))
    await job.news(args.wait)
    text, code = job.take(), job.process.exit_code
    state = "It is still running." if code is None else f"It ended with exit code {code}."
    return ToolResult(
        ok=True,
        text=f"{state}\n{text.rstrip() or '(nothing new)'}",
        data={"running": code is None, "exitCode": code, "output": text},
    )


async def kill(args: KillArgs, context: ToolContext, jobs: Jobs) -> ToolResult:
    """End a background command and all that it started."""
    job = jobs.get(context.session, args.id)
    if job is None:
        return failed(_unknown(args.id, context, jobs))
    running = job.process.exit_code is None
    await job.end()
    text = job.take()
    return ToolResult(
        ok=True, text=f"{'Ended' if running else 'It had ended already'}.\n{text.rstrip()}".rstrip()
    )


def _unknown(name: str, context: ToolContext, jobs: Jobs) -> str:
    known = ", ".join(jobs.names(context.session)) or "none"
    return f"There is no background command {name!r}. There are: {known}."


def shell_tools() -> tuple[Tool, ...]:
    """The tools, sharing one table of background commands."""
    jobs = Jobs()
    return (
        Tool("shell/run", "command", RunArgs, partial(run, jobs=jobs), preview=preview),
        Tool("shell/output", "none", OutputArgs, partial(output, jobs=jobs)),
        Tool("shell/kill", "none", KillArgs, partial(kill, jobs=jobs)),
    )
