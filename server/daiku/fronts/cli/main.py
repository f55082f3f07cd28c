"""The `daiku` command: its sub-commands, loaded when asked for, and one line for every mistake."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.texts.terminal import localize, say
from daiku.texts.text import Text
from daiku.version import __version__

if TYPE_CHECKING:
    from daiku.domain.events import Event

# Loading a sub-command's module loads what it needs (pygls, the app, …). `daiku --help` and the start
# of `daiku lsp` must not wait for the others: so each is imported when it is called for by name.
COMMANDS = {
    "run": "daiku.fronts.cli.commands.run:run",
    "chat": "daiku.fronts.cli.commands.chat:chat",
    "plan": "daiku.fronts.cli.commands.plans.plan:plan",
    "research": "daiku.fronts.cli.commands.run:research",
    "code": "daiku.fronts.cli.commands.run:code",
    "document": "daiku.fronts.cli.commands.document:document",
    "reflect": "daiku.fronts.cli.commands.document:reflect",
    "exec": "daiku.fronts.cli.commands.run:exec_",
    "eval": "daiku.fronts.cli.commands.eval:eval_",
    "resume": "daiku.fronts.cli.commands.run:resume",
    "sessions": "daiku.fronts.cli.commands.sessions:sessions",
    "report": "daiku.fronts.cli.commands.plans.report:report",
    "trace": "daiku.fronts.cli.commands.sessions:trace",
    "models": "daiku.fronts.cli.commands.lists:models",
    "tools": "daiku.fronts.cli.commands.lists:tools",
    "agents": "daiku.fronts.cli.commands.lists:agents",
    "prompts": "daiku.fronts.cli.commands.prompts:prompts",
    "mcp": "daiku.fronts.cli.commands.mcp:mcp",
    "grants": "daiku.fronts.cli.commands.grants:grants",
    "memory": "daiku.fronts.cli.commands.memory:memory",
    "playbook": "daiku.fronts.cli.commands.playbook.bullets:playbook",
    "worker": "daiku.fronts.cli.commands.work.worker:worker",
    "work": "daiku.fronts.cli.commands.work.items:work",
    "config": "daiku.fronts.cli.commands.config:config",
    "doctor": "daiku.fronts.cli.commands.doctor:doctor",
    "serve": "daiku.fronts.cli.commands.serve:serve_",
    "lsp": "daiku.fronts.cli.commands.lists:lsp",
    "acp": "daiku.fronts.cli.commands.lists:acp",
}
FAILED, USAGE, CANCELLED = 1, 2, 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why an open file refuses what is written to it."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and help, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        return getattr(importlib.import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            # click names the nearest by itself, but would import every command to find it.
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, say(f"help.{name}")) for name in COMMANDS])


class LocalizedHelp(click.HelpFormatter):
    """The formatter of help, with click's own words in the user's language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, f"{say('word.usage')} " if prefix is None else prefix)

    @contextmanager
    def section(self, name: str) -> Generator[None]:
        with super().section(_translate(name)):
            yield

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, _translate(words)) for name, words in rows], col_max, col_spacing)


click.Context.formatter_class = LocalizedHelp


def _translate(words: str) -> str:
    match words:
        case "Options":
            return say("word.options")
        case "Commands":
            return say("word.commands")
        case "Show this message and exit.":
            return say("word.show_help")
        case "Show the version and exit.":
            return say("word.show_version")
        case _:
            return words


@click.group(
    cls=LazyGroup,
    help=say("help"),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="daiku")
@click.pass_context
def cli(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code (PROTOCOL 1). Never raises for what we expect."""
    words = sys.argv[1:] if args is None else list(args)
    as_json = wants_json(words)
    _all_open()
    logging.getLogger("daiku").addHandler(
        logging.NullHandler()
    )  # before there is a log, nothing goes to the terminal
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args=words, prog_name="daiku", standalone_mode=False)
        write_output("")
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as wrong:
        from daiku.fronts.cli.usage_messages import usage_message  # only a mistake needs it

        failure = Failure(kind="usage", message=Text(_one_line(usage_message(wrong))), hint=Text(_see(wrong)))
        return fail(UsageError(failure), as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        if as_json:
            write_event(Failure(kind="cancelled", message=Text(say("cancelled"))))
        return CANCELLED
    except DaikuError as wrong:
        return fail(wrong, as_json=as_json)
    except BrokenPipeError:
        silence_broken_pipe()
        return 0
    except WriteFailed as wrong:
        silence_broken_pipe()
        return complain(say("error.output", why=wrong), "", FAILED)
    except OSError as wrong:
        if wrong.errno not in NO_ROOM or wrong.filename is not None:
            return _unexpected(wrong, as_json=as_json)
        silence_broken_pipe()
        return complain(say("error.output", why=wrong.strerror), "", FAILED)
    except Exception as wrong:  # noqa: BLE001  # the wire: one of the three places that catch all
        return _unexpected(wrong, as_json=as_json)
    return code if isinstance(code, int) else 0


def _unexpected(wrong: Exception, *, as_json: bool) -> int:
    logging.getLogger(__name__).error("the command failed", exc_info=wrong)
    message = Text(say("error.internal", what=type(wrong).__name__, log=_log_file()))
    return fail(DaikuError(Failure(kind="internal", message=message)), as_json=as_json)


def wants_json(words: Sequence[str]) -> bool:
    """Return True if the command line asks for JSON, even if it has mistakes."""
    return "--json" in takewhile(lambda word: word != "--", words)


def write_event(event: Event) -> None:
    """Write an event as a line of JSON, in the form of a chunk that belongs to no run."""
    from daiku.domain.chunks import Chunk, encode_event, iso_now  # only a mistake needs it

    chunk = Chunk(0, iso_now(), "", "", "", event, encode_event(event))
    try:
        write_json(chunk.json())
    except (OSError, WriteFailed):
        silence_broken_pipe()


def write_notice(message: str) -> None:
    """Write a message to the user as a line of JSON, where nothing else would be written."""
    from daiku.domain.events import Notice  # when used

    write_event(Notice(level="info", text=Text(message)))


def _all_open() -> None:
    """A stream that was closed by whoever started us leads nowhere: else the next file to be opened
    would take its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for as long as we live


class WriteFailed(Exception):
    """Standard output refuses what is written to it."""


def write_output(text: str) -> None:
    """Write machine output. Raises BrokenPipeError, WriteFailed."""
    with _checked_stdout() as stream:
        stream.write(text)


def write_json(document: str) -> None:
    """Write JSON as a line of UTF-8, hidden characters as JSON escapes. Raises BrokenPipeError, WriteFailed."""
    from daiku.texts.rules.visible import escape_invisible_json  # when used

    line = escape_invisible_json(document) + "\n"
    with _checked_stdout() as stream:
        stream.flush()
        # A lone surrogate becomes `\udcff`, which is its JSON escape.
        stream.buffer.write(line.encode("utf-8", "backslashreplace"))


@contextmanager
def _checked_stdout() -> Generator[TextIO]:
    """Yield standard output, and flush it at the end. Raises BrokenPipeError, WriteFailed."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as wrong:
        raise WriteFailed(wrong.strerror or type(wrong).__name__) from wrong


def silence_broken_pipe() -> None:
    """The reader of stdout went away (`| head`): nothing is wrong, and Python must not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def fail(wrong: DaikuError, *, as_json: bool) -> int:
    """Print an error in one line, and as JSON if `as_json`. Return the exit code."""
    if as_json:
        write_event(wrong.failure)
    return complain(localize(wrong.failure.message), localize(wrong.failure.hint), exit_code_of(wrong))


def exit_code_of(wrong: DaikuError) -> int:
    """2 for what the person got wrong, 1 for the rest (no usable provider is no mistake of theirs)."""
    return USAGE if isinstance(wrong, UsageError) and wrong.failure.kind != "no_provider" else FAILED


def complain(message: str, hint: str, code: int) -> int:
    """One line on stderr: what is wrong, and what to do."""
    line = _one_line(f"{message} {hint}" if hint else message)
    sys.stderr.write(f"daiku: {line}\n")
    sys.stderr.flush()
    return code


def usage(message: str) -> UsageError:
    """Build the error for a usage mistake, for sub-commands to raise."""
    return UsageError(Failure(kind="usage", message=Text(message)))


def _one_line(text: str) -> str:
    from daiku.fronts.cli.display.term import safe  # only a mistake needs it

    return safe(" ".join(text.split()))


def _see(wrong: click.ClickException) -> str:
    ctx = getattr(wrong, "ctx", None)
    return say("error.help", command=ctx.command_path) if ctx is not None else ""


def _log_file() -> str:
    files = [h.baseFilename for h in logging.getLogger().handlers if isinstance(h, logging.FileHandler)]
    return next((name for name in files if name.endswith("daiku.log")), "logs/daiku.log")
