"""Every end of every command with `--json` is told on stdout: a script never reads nothing."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest

from daiku.fronts.cli.main import cli, main, wants_json
from tests.cases import for_each
from tests.cli.conftest import Daiku, Done, call
from tests.conftest import ROOT


def json_commands(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that takes `--json`, with a word for each argument that it needs."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from json_commands(inner, (*words, name))
    if any("--json" in parameter.opts for parameter in command.params):
        needed = [p for p in command.params if isinstance(p, click.Argument) and p.required]
        yield (*words, *("nothing" for _ in needed))


COMMANDS = tuple(json_commands())
RUNS = ("run", "chat", "plan", "research", "code", "document", "reflect", "exec", "resume")


def error_of(done: Done) -> dict[str, Any]:
    """Return the error on the last line of stdout, which has the form of a chunk."""
    last = json.loads(done.out.splitlines()[-1])
    assert (last["type"], last["seq"], last["run"], last["session"]) == ("error", 0, "", ""), last
    assert last["data"]["message"], last
    return last["data"]


def test_the_table_has_every_command() -> None:
    """A23.5"""
    others = {"sessions", "models", "tools", "config", "work", "worker", "eval"}
    assert {words[0] for words in COMMANDS} >= {*RUNS, *others}
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_option_is_an_error_in_json(words: tuple[str, ...], daiku: Daiku) -> None:
    """A23.5"""
    done = daiku(*words, "--json", "--nope")
    assert done.code == 2
    assert error_of(done)["kind"] == "usage"
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("variable", ["DAIKU_LIMITS__NOPE", "DAIKU_LLM__NOPE"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_wrong_settings_are_an_error_in_json(
    words: tuple[str, ...], variable: str, daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5: where a command reads no settings, or none of models, it prints its document."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv(variable, "1")
    done = daiku(*words, "--json", *(["--once"] if words == ("worker",) else []))
    assert done.out, done.err
    asks_model = words[0] in RUNS and (words[0] != "plan" or words == ("plan",))
    assert done.code == 2 or not (asks_model if variable == "DAIKU_LLM__NOPE" else words[0] in RUNS)
    if done.code:
        assert error_of(done)["message"] in done.err
    else:
        json.loads(done.out)


UNKNOWN: dict[str, tuple[str, ...]] = {
    "run in no folder": ("run", "-C", "none", "hello"),
    "unknown model": ("run", "--model", "nope/x", "hello"),
    "unknown session": ("run", "--session", "ses_00000000", "hello"),
    "no session to continue": ("run", "--continue", "hello"),
    "two sessions": ("run", "--continue", "--session", "x", "hello"),
    "nobody to ask": ("run", "--approve", "ask", "hello"),
    "empty prompt": ("run", " "),
    "no prompt": ("run",),
    "unknown run": ("resume", "run_00000000"),
    "no run": ("resume",),
    "unknown plan": ("plan", "show", "plan_00000000"),
    "unknown plan to work": ("plan", "work", "plan_00000000"),
    "unknown plan to approve": ("plan", "approve", "plan_00000000"),
    "unknown work item": ("work", "show", "files:none"),
    "unknown work item to pause": ("work", "pause", "files:none"),
    "no work item": ("work", "show", "none"),
    "unknown state of items": ("work", "list", "--state", "none"),
    "unknown session to replay": ("sessions", "replay", "ses_00000000"),
    "unknown session to show changes of": ("sessions", "changes", "ses_00000000"),
    "unknown lesson": ("playbook", "show", "bat-00000"),
    "folder of tasks": ("eval", "none"),
    "unknown command": ("nope",),
    "unknown sub-command": ("work", "nope"),
    "no worker": ("worker", "--health"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_does_not_exist_is_an_error_in_json(
    case: str, daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5"""
    monkeypatch.chdir(workspace)
    done = daiku(*UNKNOWN[case], "--json")
    assert done.code in (1, 2), done
    assert len(done.out.splitlines()) == 1
    assert error_of(done)["kind"] in ("usage", "not_found", "no_provider")


def test_without_json_an_error_prints_nothing_on_stdout(daiku: Daiku, workspace: Path) -> None:
    """A23.5"""
    assert daiku("resume", "run_00000000").out == ""
    assert daiku("run", "-C", "none", "--", "--json").out == ""


ENDS: dict[str, tuple[list[dict[str, Any]], int, str]] = {
    "completed": ([{"text": "Done."}], 0, "completed"),
    "unverified": ([{"text": "I changed a.txt."}], 5, "completed_unverified"),
    "needs approval": (
        [{"calls": [call("files/write", path="a.txt", content="a")]}, {"text": "Done."}],
        4,
        "completed_unverified",
    ),
}


@pytest.mark.parametrize("case", ENDS)
@pytest.mark.parametrize("name", ["run", "session"])
def test_a_run_that_has_ended_repeats_its_last_line(
    case: str, name: str, daiku: Daiku, script: Callable[..., str]
) -> None:
    """A23.5"""
    lines, code, status = ENDS[case]
    asked = "Say hello." if case == "completed" else "Change a.txt."
    first = daiku("run", "--json", "--model", script(*lines), asked)
    last = next(c for c in reversed(first.chunks()) if c["type"] == "run_finished")
    again = daiku("resume", last[name], "--json")
    assert (first.code, again.code, last["data"]["status"]) == (code, code, status)
    assert again.chunks() == [last]


@pytest.mark.parametrize(
    ("error", "code", "kind"), [(KeyboardInterrupt, 130, "cancelled"), (ZeroDivisionError, 1, "internal")]
)
def test_what_ends_a_command_before_its_run_is_an_error_in_json(
    error: type[BaseException],
    code: int,
    kind: str,
    daiku: Daiku,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A23.5: an interrupt, and an unexpected error."""
    monkeypatch.setattr("daiku.fronts.cli.commands.run.open_app", Mock(side_effect=error))
    done = daiku("run", "hello", "--json")
    assert (done.code, error_of(done)["kind"]) == (code, kind)


def test_each_line_of_a_conversation_that_fails_is_told_in_json(
    daiku: Daiku, script: Callable[..., str]
) -> None:
    """A23.5"""
    done = daiku("chat", "--json", "--model", "nope/x", stdin=b"hello\nhello again\n")
    assert [json.loads(line)["type"] for line in done.out.splitlines()] == ["error", "error"]


@pytest.mark.parametrize("stdin", [b"", b"\n", b"  \n\n", b"/help\n"])
def test_a_conversation_without_a_message_is_told_in_json(
    stdin: bytes, daiku: Daiku, script: Callable[..., str]
) -> None:
    """A23.5"""
    done = daiku("chat", "--json", "--model", script({"text": "Hello."}), stdin=stdin)
    (line,) = done.chunks()
    assert (done.code, line["type"], line["data"]["text"]) == (0, "notice", "No message was sent.")
    asked = daiku("chat", "--json", "--model", script({"text": "Hello."}), stdin=b"hello\n")
    assert "notice" not in [chunk["type"] for chunk in asked.chunks()]


def test_a_conversation_says_first_where_it_is_and_which_model_answers_or_why_none_does(
    daiku: Daiku, script: Callable[..., str]
) -> None:
    model = script({"text": "Hello."})
    first, second, *_ = daiku("chat", "--model", model, stdin=b"").err.splitlines()
    assert (first[:9], second) == ("Daiku in ", f"Model: {model}")
    first, second, *_ = daiku("chat", "--model", "nope/x", stdin=b"").err.splitlines()
    assert (first[:9], second[:30]) == ("Daiku in ", "Unknown provider “nope” in the")


def test_the_tasks_of_an_evaluation_are_listed_in_json(daiku: Daiku) -> None:
    """A23.5"""
    listed = json.loads(daiku("eval", "--list", "--json").out)
    assert {"name", "language", "summary", "needs"} <= listed[0].keys()


@for_each(
    ("words", "expected"),
    [
        (["run", "--json", "x"], True),
        (["run", "x", "--json"], True),
        (["run", "--", "--json"], False),
        (["run"], False),
    ],
)
def test_json_is_asked_for_by_an_option(words: list[str], expected: bool) -> None:
    """A23.5"""
    assert wants_json(words) is expected


def test_an_error_is_in_the_language_of_the_user(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5: what the command line is told wrongly."""
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "オプション" in error_of(daiku("run", "--json", "--nope", "x"))["message"]
    assert main(["run"]) == 2


def called_names(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call inside `node` with the last part of the name that it calls."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name | ast.Attribute):
            yield inner.func.id if isinstance(inner.func, ast.Name) else inner.func.attr, inner


def test_json_is_written_in_one_place() -> None:
    """A23.8: `write_json` is the only writer of JSON, so that no command writes hidden characters raw."""
    writers = {"echo", "write", "write_out", "write_output"}
    raw: list[str] = []
    for file in (ROOT / "server" / "daiku" / "fronts" / "cli").rglob("*.py"):
        for name, writer in called_names(ast.parse(file.read_text(encoding="utf-8"))):
            inner = {name for part in writer.args for name, _ in called_names(part)}
            if name in writers and inner & {"dumps", "model_dump_json"} and "safe" not in inner:
                raw.append(f"{file.name}:{writer.lineno}")
    assert raw == []


HIDDEN = "a\u202eb\u200bc\U000e0041d\u2066e"


@pytest.mark.parametrize("words", ["sessions list", "sessions export {0} --format json", "trace {0}"])
def test_hidden_characters_are_escapes_in_json(words: str, daiku: Daiku, script: Callable[..., str]) -> None:
    """A23.8: the values in the document do not change."""
    run = daiku("run", "--json", "--model", script({"text": HIDDEN}), f"Say {HIDDEN}")
    session = run.chunks()[0]["session"]
    end = ["--json"] if words.endswith("list") else []
    done = daiku(*words.format(session).split(), *end)
    assert not set(HIDDEN) & set(done.out) - set("abcde")
    assert any(HIDDEN in value for value in values_of([json.loads(line) for line in done.out.splitlines()]))


def values_of(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from values_of(inner)


def test_a_listed_lesson_keeps_hidden_characters_as_escapes(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.8"""
    monkeypatch.chdir(workspace)
    assert daiku("playbook", "add", f"Use {HIDDEN}.", "--section", "strategies").code == 0
    done = daiku("playbook", "list", "--json")
    assert not set(HIDDEN) & set(done.out) - set("abcde")
    assert HIDDEN in json.loads(done.out)[0]["content"]
