"""The `daiku` command: subcommands that are imported on demand, and one-line error messages."""

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

# A subcommand's module is imported only when it runs: `daiku --help` and `daiku lsp` must start fast.
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
    "mcp": "daiku.fronts.cli.commands.lists:mcp",
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
"""Error numbers of failed writes to standard output."""


class LazyGroup(click.Group):
    """A click group that knows its commands by name and help, and imports one only to run it."""

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
            # click would import every command to suggest the nearest.
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, say(f"help.{name}")) for name in COMMANDS])


class LocalizedHelp(click.HelpFormatter):
    """A help formatter that translates click's own texts."""

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
    """Run the command line and return the exit code (PROTOCOL 1). Handles all expected errors."""
    arguments = sys.argv[1:] if args is None else list(args)
    as_json = wants_json(arguments)
    _open_closed_streams()
    logging.getLogger("daiku").addHandler(
        logging.NullHandler()
    )  # logging must not write to the terminal before it is set up
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args=arguments, prog_name="daiku", standalone_mode=False)
        write_output("")
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        from daiku.fronts.cli.usage_messages import usage_message  # when used

        failure = Failure(
            kind="usage", message=Text(_one_line(usage_message(error))), hint=Text(_help_hint(error))
        )
        return fail(UsageError(failure), as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        if as_json:
            write_event(Failure(kind="cancelled", message=Text(say("cancelled"))))
        return CANCELLED
    except DaikuError as error:
        return fail(error, as_json=as_json)
    except BrokenPipeError:
        silence_broken_pipe()
        return 0
    except WriteFailed as error:
        silence_broken_pipe()
        return complain(say("error.output", why=error), "", FAILED)
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename is not None:
            return _unexpected(error, as_json=as_json)
        silence_broken_pipe()
        return complain(say("error.output", why=error.strerror), "", FAILED)
    except Exception as error:  # noqa: BLE001  # the wire: one of the three places that catch all
        return _unexpected(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception, *, as_json: bool) -> int:
    logging.getLogger(__name__).error("the command failed", exc_info=error)
    message = Text(say("error.internal", what=type(error).__name__, log=_log_file()))
    return fail(DaikuError(Failure(kind="internal", message=message)), as_json=as_json)


def wants_json(words: Sequence[str]) -> bool:
    """Return True if the command line contains `--json`, even if it is invalid."""
    return "--json" in takewhile(lambda word: word != "--", words)


def write_event(event: Event) -> None:
    """Write an event as a line of JSON, as a chunk without a run."""
    from daiku.domain.chunks import Chunk, encode_event, iso_now  # when used

    chunk = Chunk(0, iso_now(), "", "", "", event, encode_event(event))
    try:
        write_json(chunk.json())
    except (OSError, WriteFailed):
        silence_broken_pipe()


def write_notice(message: str) -> None:
    """Write a message to the user as a line of JSON, if there is no other output."""
    from daiku.domain.events import Notice  # when used

    write_event(Notice(level="info", text=Text(message)))


def _open_closed_streams() -> None:
    """Replace closed standard streams by /dev/null, so that no file takes their descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open until the process ends


class WriteFailed(Exception):
    """A failed write to standard output."""


def write_output(text: str) -> None:
    """Write machine output. Raises BrokenPipeError, WriteFailed."""
    with _checked_stdout() as stream:
        stream.write(text)


def write_json(document: str) -> None:
    """Write JSON as a line of UTF-8, with hidden characters escaped. Raises BrokenPipeError, WriteFailed."""
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
    except OSError as error:
        raise WriteFailed(error.strerror or type(error).__name__) from error


def silence_broken_pipe() -> None:
    """Redirect stdout to /dev/null after its reader ended (`| head`), so that exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def fail(error: DaikuError, *, as_json: bool) -> int:
    """Print an error in one line, and as JSON if `as_json`. Return the exit code."""
    if as_json:
        write_event(error.failure)
    return complain(localize(error.failure.message), localize(error.failure.hint), exit_code_of(error))


def exit_code_of(error: DaikuError) -> int:
    """Return 2 for usage errors and 1 for others; a missing provider is not a usage error."""
    return USAGE if isinstance(error, UsageError) and error.failure.kind != "no_provider" else FAILED


def complain(message: str, hint: str, code: int) -> int:
    """Write one line to stderr: the error and what to do. Return `code`."""
    line = _one_line(f"{message} {hint}" if hint else message)
    sys.stderr.write(f"daiku: {line}\n")
    sys.stderr.flush()
    return code


def usage_error(message: str) -> UsageError:
    """Build a usage error for a subcommand to raise."""
    return UsageError(Failure(kind="usage", message=Text(message)))


def _one_line(text: str) -> str:
    from daiku.fronts.cli.display.term import safe  # when used

    return safe(" ".join(text.split()))


def _help_hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return say("error.help", command=ctx.command_path) if ctx is not None else ""


def _log_file() -> str:
    files = [h.baseFilename for h in logging.getLogger().handlers if isinstance(h, logging.FileHandler)]
    return next((name for name in files if name.endswith("daiku.log")), "logs/daiku.log")
