"""Try a command in a sandbox that discards its writes, to see whether it only reads."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from subprocess import SubprocessError

from daiku.domain.tools import ToolResult
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.rules import CLIENTS
from daiku.guard.rules.commands.wrappers import program_name
from daiku.guard.sandbox.overlay import NOT_MOUNTED, Layer, open_layers, written_paths
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.shell.preparing import PreparedCommand, RunArgs, names_git, prepare, wrap_in_trial
from daiku.tools.shell.printed import build_command_result, find_hint, format_output
from daiku.tools.shell.process import start
from daiku.tools.tool import ToolContext

TRIAL_SECONDS = 5.0
"""Seconds after which a trial ends and the user is asked."""
MAX_PATHS = 3
"""Written paths that the reason lists."""
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1", "NODE_DISABLE_COMPILE_CACHE": "1"}


async def try_reading(args: RunArgs, context: ToolContext, *, serving: bool) -> ToolResult | Text:
    """Return the result of a command that wrote nothing, else the reason to ask ("" if no trial was possible)."""
    if serving and any(
        program_name(simple.words) in CLIENTS for simple in read_script(args.command).commands
    ):
        return NO_TEXT
    prepared = prepare(args, context)
    if isinstance(prepared, ToolResult):
        return prepared
    if prepared.bounds is None or prepared.state != "on":
        return NO_TEXT
    with ExitStack() as stack:
        try:
            layers = await asyncio.to_thread(stack.enter_context, open_layers(prepared.roots))
            if layers is None:
                return NO_TEXT
            return await _run_trial(layers, prepared, args, context, serving=serving)
        except (OSError, ValueError, SubprocessError):
            return NO_TEXT


async def _run_trial(
    layers: tuple[Layer, ...],
    prepared: PreparedCommand,
    args: RunArgs,
    context: ToolContext,
    *,
    serving: bool,
) -> ToolResult | Text:
    argv, masked = await asyncio.to_thread(wrap_in_trial, prepared, layers)
    if masked and prepared.history and names_git(prepared.command):
        return NO_TEXT  # in a trial that hides files, git finds no history
    env = prepared.env | _ENVIRONMENT
    process = await start(argv, cwd=prepared.folder, env=env, stdin=args.stdin, terminal=False, reaped=False)
    try:
        async with asyncio.timeout(min(args.timeout, TRIAL_SECONDS)):
            code = await process.finish(lambda _: None)
    except TimeoutError:
        return text("shell.trial_too_long", seconds=f"{TRIAL_SECONDS:g}")
    finally:
        await asyncio.shield(process.stop())
    paths_written = await asyncio.to_thread(lambda: tuple(islice(written_paths(layers), MAX_PATHS)))
    if paths_written:
        return text("shell.trial_wrote", paths=_format_names(paths_written, prepared.roots))
    if code == NOT_MOUNTED:
        return NO_TEXT
    if code != 0 and (masked or serving or prepared.bounds is None or prepared.bounds.writable):
        return text("shell.trial_failed", code=code)
    printed = await asyncio.to_thread(format_output, process, args, context)
    hint = "" if code == 0 else find_hint(printed.shown, prepared)
    return build_command_result(process, code, "", (), printed, hint)


def _format_names(written: tuple[str, ...], roots: tuple[Path, ...]) -> str:
    """Return the written paths relative to the workspace."""
    names: list[str] = []
    for path in written:
        root = next((root for root in roots if Path(path).is_relative_to(root.resolve())), None)
        name = str(Path(path).relative_to(root.resolve())) if root else Path(path).name
        names.append(show_hidden(name))
    return ", ".join(names)
