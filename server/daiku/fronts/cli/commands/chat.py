"""`daiku chat`: an interactive conversation with history and slash commands."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, get_args

import click

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import DaikuError
from daiku.domain.runs import ClientApprovals, Mode
from daiku.fronts.cli.app_setup import folder_of, open_app
from daiku.fronts.cli.commands.run import named_session
from daiku.fronts.cli.commands.sessions import session_line
from daiku.fronts.cli.display.term import human_stream, safe, terminal
from daiku.fronts.cli.display.toollines import irrevocable_lines
from daiku.fronts.cli.drive import RunMode, drive, end_background_commands
from daiku.fronts.cli.main import fail, usage_error, write_notice
from daiku.fronts.cli.options import RunOptions, run_options
from daiku.library.fronts import App, RunRequest
from daiku.settings import home, private_file
from daiku.texts.terminal import localize, say

try:
    import readline
except ImportError:  # Windows: the console edits lines
    readline = None

PASTE_SECONDS = 0.05
"""Seconds without input after which a pasted message is complete."""
HISTORY_LINES = 1000
"""Maximum number of lines in the history."""


@dataclass(frozen=True, slots=True)
class ChatState:
    """State of a conversation."""

    session: str | None
    model: str
    mode: Mode
    approvals: ClientApprovals
    attended: bool = True
    over: bool = False
    code: int = field(default=0)


@click.command(help=say("help.chat"))
@run_options
def chat(**options: Any) -> int:
    parsed = RunOptions(**options)
    folder = folder_of(parsed.folder)
    with asyncio.Runner() as runner, _history(home(os.environ) / "chat-history"):
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(folder, parsed.overrides(), asks_model=True)))
        runner.run(stack.enter_async_context(end_background_commands()))
        try:
            state = ChatState(
                named_session(app, parsed), parsed.model, parsed.mode, parsed.approvals(), parsed.attended
            )
            return _run_chat(runner, app, state, as_json=parsed.as_json)
        finally:
            runner.run(stack.aclose())


def _run_chat(runner: asyncio.Runner, app: App, state: ChatState, *, as_json: bool) -> int:
    people = human_stream()
    answered = False
    people.write(say("chat.welcome", folder=app.runs.services.workspace_key) + "\n")
    people.write(_model_line(app, state.model) + "\n")
    while not state.over:
        text = (
            _read_typed_message(people.paint("› ", "bold", "cyan") if people.live else "> ")
            if state.attended
            else _read_piped_line()
        )
        if text is None:
            break
        try:
            if text.startswith("/"):
                state = _run_slash_command(runner, app, state, text)
            elif text.strip():
                answered = True
                state = _run_turn(runner, app, state, text, as_json=as_json)
        except DaikuError as error:
            answered = True
            code = fail(error, as_json=as_json)
            state = state if state.attended else replace(state, code=code)
    if as_json and not answered:
        write_notice(say("chat.nothing_asked"))
    people.write(say("chat.bye") + "\n")
    runner.run(app.runs.learner.settle(reflections=False))
    return state.code


def _run_turn(runner: asyncio.Runner, app: App, state: ChatState, text: str, *, as_json: bool) -> ChatState:
    request = RunRequest(
        text=text,
        session=state.session,
        mode=state.mode,
        model=state.model,
        approvals=state.approvals,
        attended=state.attended,
    )

    how = RunMode(state.approvals, state.attended, as_json=as_json, steer=state.attended)
    code, result = runner.run(drive(app, lambda listen: app.runs.run(request, listen), how))
    # For piped lines the last failure determines the exit code.
    return replace(state, session=result.session_id, code=code if state.attended else code or state.code)


def _run_slash_command(runner: asyncio.Runner, app: App, state: ChatState, text: str) -> ChatState:
    name, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    match name:
        case "/help" | "/?":
            _print(say("chat.help"))
        case "/quit" | "/exit" | "/q":
            return replace(state, over=True)
        case "/new":
            _print(say("chat.new"))
            return replace(state, session=None)
        case "/stop":
            _print(say("chat.nothing_runs"))
        case "/mode":
            if rest in get_args(Mode):
                state = replace(state, mode=rest)
            elif rest:
                raise usage_error(f"--mode: ask, plan, act ({safe(rest)})")
            _print(say("chat.mode", mode=state.mode))
        case "/model":
            if rest:
                app.llm.choose(rest)
                state = replace(state, model=rest)
            _print(_model_line(app, state.model))
        case "/sessions":
            for session in app.journal.list_sessions(rest, 20, app.runs.services.workspace_key):
                _print(session_line(session, terminal(sys.stderr)))
        case "/session":
            session = app.journal.get_session(rest)
            _print(say("chat.session", session=session.session_id, title=safe(session.title)))
            return replace(state, session=session.session_id)
        case "/undo":
            _undo(runner, app, state.session)
        case _:
            raise usage_error(say("chat.unknown", command=safe(name)))
    return state


def _undo(runner: asyncio.Runner, app: App, session: str | None) -> None:
    """Undo the file changes of the last run that made any."""
    if session is None:
        _print(say("chat.nothing_to_undo"))
        return
    outcome = runner.run(app.reviews.undo(session))
    _print(say("chat.undone", files=", ".join(safe(f.path) for f in outcome.files) or "-"))
    for line in irrevocable_lines(outcome.cannot_undo):
        _print(line)


def _model_line(app: App, name: str) -> str:
    """Return the current model, or why there is none."""
    try:
        return say("chat.model", model=safe(app.llm.resolve(name).name))
    except DaikuError as error:
        return safe(localize(error.failure.message))


def _print(text: str) -> None:
    human_stream().write(text + "\n")


def _read_piped_line() -> str | None:
    """Read one line of a pipe or a file; None at its end. It is always a request."""
    line = sys.stdin.buffer.readline()
    return line.decode("utf-8", "replace").strip("\ufeff\r\n \t") if line else None


def _read_typed_message(prompt: str) -> str | None:
    """Read one message with line editing and history; None at the end of input.

    Ctrl-C clears the line. A multi-line paste is one message.
    """
    if readline is not None:
        readline.parse_and_bind("set enable-bracketed-paste on")
        # readline counts columns: mark the color codes of the prompt as invisible.
        prompt = prompt.replace("\x1b[", "\x01\x1b[").replace("m", "m\x02") if "\x1b" in prompt else prompt
    try:
        line = input(prompt)
        return line.strip() if line.startswith("/") else f"{line}\n{_rest_of_paste()}".strip()
    except EOFError:
        sys.stderr.write("\n")
        return None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return ""


def _rest_of_paste() -> str:
    """Return the lines that arrived with the first, for terminals without bracketed paste."""
    lines: list[str] = []
    if sys.platform != "win32" and sys.stdin.isatty():
        descriptor = sys.stdin.fileno()
        while select.select([descriptor], [], [], PASTE_SECONDS)[0]:
            data = os.read(descriptor, 65536)
            if not data:
                break
            lines.append(data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(lines)


class _history:  # noqa: N801  # used like a function
    """A context manager for the input history, which is kept in a private file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        if readline is not None:
            readline.set_history_length(HISTORY_LINES)
            try:
                readline.read_history_file(private_file(self._path))
            except OSError:  # a file of another readline: start with an empty history
                return

    def __exit__(self, *_: object) -> None:
        if readline is not None:
            with suppress(OSError):  # the home folder is read-only
                readline.write_history_file(private_file(self._path))
