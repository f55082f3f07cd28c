"""The command tree: every command of PROTOCOL 1 exists, and `--help` ends with 0 and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
import pytest

from daiku.fronts.cli import app_setup
from daiku.fronts.cli.main import COMMANDS, cli
from tests.cli.conftest import Done

PROTOCOL = """
lsp run chat plan code exec report eval grants resume worker work playbook sessions trace models tools config doctor acp serve
plan list, plan show, plan edit, plan approve, plan work, plan export, plan import, plan delete
grants list, grants revoke
work list, work show, work pause, work resume, work cancel, work retry
playbook list, playbook search, playbook add, playbook remove, playbook review, playbook export, playbook import
playbook adapt, playbook show, playbook deltas, playbook disable, playbook enable
sessions list, sessions show, sessions export, sessions replay, sessions delete
config show
"""
"""Commands of PROTOCOL 1 and 9: the first line names commands, the others subcommands."""


def protocol_paths() -> Iterator[tuple[str, ...]]:
    first, *rest = PROTOCOL.strip().split("\n")
    yield from ((name,) for name in first.split())
    yield from (tuple(path.split()) for line in rest for path in line.split(", "))


def tree() -> Iterator[tuple[str, ...]]:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield from below((name,), command)


def below(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from below((*path, name), inner)


def test_every_command_of_the_protocol_exists() -> None:
    assert set(protocol_paths()) <= set(tree())


@pytest.mark.parametrize("path", sorted(tree()), ids=" ".join)
def test_help_ends_with_0_and_opens_nothing(
    daiku: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setattr(app_setup, "build", None)
    for option in ("--help", "-h"):
        done = daiku(*path, option)
        assert (done.code, done.err) == (0, "")
        assert f"Usage: daiku {' '.join(path)}" in done.out
