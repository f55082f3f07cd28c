"""`daiku chat`: a conversation in the terminal, with history and a few commands."""

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
from daiku.fronts.cli.display.toollines import stays_lines
from daiku.fronts.cli.drive import RunMode, drive, end_background_commands
from daiku.fronts.cli.main import fail, usage_error, write_notice
from daiku.fronts.cli.options import RunOptions, run_options
from daiku.library.fronts import App, RunRequest
from daiku.settings import home, private_file
from daiku.texts.terminal import localize, say

try:
    import readline
except ImportError:  # Windows: its console edits lines by itself
    readline = None

PASTE_SECONDS = 0.05
"""A message ends when no more input arrives for this long."""
HISTORY_LINES = 1000


@dataclass(frozen=True, slots=True)
class ChatState:
    """Where a conversation stands."""

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
    chosen = RunOptions(**options)
    folder = folder_of(chosen.folder)
    with asyncio.Runner() as runner, _history(home(os.environ) / "chat-history"):
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(folder, chosen.overrides(), asks_model=True)))
        runner.run(stack.enter_async_context(end_background_commands()))
        try:
            talk = ChatState(
                named_session(app, chosen), chosen.model, chosen.mode, chosen.approvals(), chosen.attended
            )
            return _talk(runner, app, talk, as_json=chosen.as_json)
        finally:
            runner.run(stack.aclose())


def _talk(runner: asyncio.Runner, app: App, talk: ChatState, *, as_json: bool) -> int:
    people = human_stream()
    answered = False
    people.write(say("chat.welcome", folder=app.runs.services.workspace_key) + "\n")
    people.write(_model_line(app, talk.model) + "\n")
    while not talk.over:
        text = (
            _typed(people.paint("› ", "bold", "cyan") if people.live else "> ") if talk.attended else _piped()
        )
        if text is None:
            break
        try:
            if text.startswith("/"):
                talk = _command(runner, app, talk, text)
            elif text.strip():
                answered = True
                talk = _turn(runner, app, talk, text, as_json=as_json)
        except DaikuError as wrong:
            answered = True
            code = fail(wrong, as_json=as_json)
            talk = talk if talk.attended else replace(talk, code=code)
    if as_json and not answered:
        write_notice(say("chat.nothing_asked"))
    people.write(say("chat.bye") + "\n")
    runner.run(app.runs.afterwards.settle(looks=False))
    return talk.code


def _turn(runner: asyncio.Runner, app: App, talk: ChatState, text: str, *, as_json: bool) -> ChatState:
    request = RunRequest(
        text=text,
        session=talk.session,
        mode=talk.mode,
        model=talk.model,
        approvals=talk.approvals,
        attended=talk.attended,
    )

    how = RunMode(talk.approvals, talk.attended, as_json=as_json, steer=talk.attended)
    code, result = runner.run(drive(app, lambda listen: app.runs.run(request, listen), how))
    # Of lines from a pipe the last that did not end well counts: a script must hear of it.
    return replace(talk, session=result.session_id, code=code if talk.attended else code or talk.code)


def _command(runner: asyncio.Runner, app: App, talk: ChatState, text: str) -> ChatState:
    name, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    match name:
        case "/help" | "/?":
            _say(say("chat.help"))
        case "/quit" | "/exit" | "/q":
            return replace(talk, over=True)
        case "/new":
            _say(say("chat.new"))
            return replace(talk, session=None)
        case "/stop":
            _say(say("chat.nothing_runs"))
        case "/mode":
            if rest in get_args(Mode):
                talk = replace(talk, mode=rest)
            elif rest:
                raise usage_error(f"--mode: ask, plan, act ({safe(rest)})")
            _say(say("chat.mode", mode=talk.mode))
        case "/model":
            if rest:
                app.llm.choose(rest)
                talk = replace(talk, model=rest)
            _say(_model_line(app, talk.model))
        case "/sessions":
            for session in app.journal.list_sessions(rest, 20, app.runs.services.workspace_key):
                _say(session_line(session, terminal(sys.stderr)))
        case "/session":
            found = app.journal.get_session(rest)
            _say(say("chat.session", session=found.session_id, title=safe(found.title)))
            return replace(talk, session=found.session_id)
        case "/undo":
            _undo(runner, app, talk.session)
        case _:
            raise usage_error(say("chat.unknown", command=safe(name)))
    return talk


def _undo(runner: asyncio.Runner, app: App, session: str | None) -> None:
    """Take back what the last run that changed files did to them."""
    if session is None:
        _say(say("chat.nothing_to_undo"))
        return
    brought = runner.run(app.reviews.undo(session))
    _say(say("chat.undone", files=", ".join(safe(f.path) for f in brought.files) or "-"))
    for line in stays_lines(brought.cannot_undo):
        _say(line)


def _model_line(app: App, name: str) -> str:
    """Return the model that would answer, or why there is none."""
    try:
        return say("chat.model", model=safe(app.llm.resolve(name).name))
    except DaikuError as wrong:
        return safe(localize(wrong.failure.message))


def _say(text: str) -> None:
    human_stream().write(text + "\n")


def _piped() -> str | None:
    """One line of a pipe or a file; None at its end. It is a request, and answers nothing else."""
    line = sys.stdin.buffer.readline()
    return line.decode("utf-8", "replace").strip("\ufeff\r\n \t") if line else None


def _typed(prompt: str) -> str | None:
    """One message, edited with history; None at the end of input. Ctrl-C empties the line. A paste of several lines is
    one message."""
    if readline is not None:
        readline.parse_and_bind("set enable-bracketed-paste on")
        # readline counts columns: it must know what of the prompt is colour.
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
    """Return the lines that arrived together with the first: a paste where the line editor does not mark pastes."""
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
    """The lines typed before, kept in a private file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        if readline is not None:
            readline.set_history_length(HISTORY_LINES)
            try:
                readline.read_history_file(private_file(self._path))
            except OSError:  # a file of another readline: start anew
                return

    def __exit__(self, *_: object) -> None:
        if readline is not None:
            with suppress(OSError):  # a home that may only be read has no history
                readline.write_history_file(private_file(self._path))
