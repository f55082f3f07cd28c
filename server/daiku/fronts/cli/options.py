"""Options that commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.runs import ClientApprovals, Mode
from daiku.fronts.cli.display.term import person_present
from daiku.fronts.cli.main import usage_error
from daiku.texts.terminal import say

F = TypeVar("F", bound=Callable[..., Any])
MAX_PROMPT = 10_000_000
"""Maximum bytes of a prompt on stdin."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Command-line options of a run; empty fields fall back to the settings."""

    folder: str | None
    model: str
    mode: Mode
    approve: ClientApprovals | None
    as_json: bool
    session: str | None
    last: bool
    max_cost: float | None
    max_tokens: int | None
    max_rounds: int | None
    max_seconds: int | None

    def approvals(self) -> ClientApprovals:
        """Return the approval level: what is granted in advance.

        Without a terminal, all other requests are denied. Raises UsageError.
        """
        attended = self.attended
        if self.approve == "ask" and not attended:
            raise usage_error(say("error.ask_nobody"))
        return self.approve or ("ask" if attended else "none")

    @property
    def attended(self) -> bool:
        """True if the user can be asked; input from a pipe does not count."""
        return person_present()

    def overrides(self) -> JsonObject:
        """Return the options as the settings layer with the highest precedence."""
        limits: JsonObject = {
            name: value
            for name in ("max_cost", "max_tokens", "max_rounds", "max_seconds")
            if (value := getattr(self, name)) is not None
        }
        return {"limits": limits} if limits else {}


def command_group(name: str) -> click.Group:
    """Return a command group that shows its help if no command is given."""

    @click.pass_context
    def show_help(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    return click.Group(name, help=say(f"help.{name}"), invoke_without_command=True, callback=show_help)


def run_options(command: F) -> F:
    """Decorate a command that takes `options: RunOptions` with `-C`, `--model`, and the others."""
    amount, count = click.FloatRange(min=0), click.IntRange(min=0)
    for option in reversed(
        [
            click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir")),
            click.option("--model", default="", metavar="M", help=say("help.opt.model")),
            click.option(
                "--mode", type=click.Choice(["ask", "plan", "act"]), default="act", help=say("help.opt.mode")
            ),
            click.option(
                "--approve", type=click.Choice(get_args(ClientApprovals)), help=say("help.opt.approve")
            ),
            click.option("--json", "as_json", is_flag=True, help=say("help.opt.json")),
            click.option("--session", metavar="ID", help=say("help.opt.session")),
            click.option("--continue", "last", is_flag=True, help=say("help.opt.continue")),
            click.option("--max-cost", type=amount, metavar="USD", help=say("help.opt.max_cost")),
            click.option("--max-tokens", type=count, metavar="N", help=say("help.opt.max_tokens")),
            click.option("--max-rounds", type=count, metavar="N", help=say("help.opt.max_rounds")),
            click.option("--max-seconds", type=count, metavar="N", help=say("help.opt.max_seconds")),
        ]
    ):
        command = option(command)
    return command


def place_options(command: F) -> F:
    """Decorate a command that needs no run with `-C` and `--json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json")),
        click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir")),
    ):
        command = option(command)
    return command


def prompt_text(words: tuple[str, ...]) -> str:
    """Return the prompt from the command line, or from stdin for `-`. Raises UsageError."""
    text = argument_text(words)
    if not text.strip() or "\0" in text:
        raise usage_error(say("error.prompt_empty"))
    return text


def argument_text(words: tuple[str, ...]) -> str:
    """Return the text from the command line, or from stdin for `-`; may be empty. Raises UsageError."""
    text = " ".join(words)
    if words == ("-",):
        data = sys.stdin.buffer.read(MAX_PROMPT + 1)
        if len(data) > MAX_PROMPT:
            raise usage_error(say("error.prompt_large", where="stdin", limit=MAX_PROMPT))
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise usage_error(say("error.prompt_utf8", where="stdin")) from None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise usage_error(say("error.prompt_utf8", where="PROMPT")) from None
    return text
