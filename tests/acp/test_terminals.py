"""Commands in the client's terminal: seen by the person, bounded by our rules, never run twice, ended in time."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp.schema import CreateTerminalResponse, KillTerminalResponse

from daiku.guard.sandbox import bubblewrap
from daiku.tools.shell import in_terminal
from tests.acp.pair import TERMINALS, Editor, connected

Script = Callable[..., None]


def run(command: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "shell/run", "args": {"command": command, **args}}]}


def result(editor: Editor) -> Any:
    """The data of the call that ended last."""
    return [u for u in editor.of("tool_call_update") if u.status in ("completed", "failed")][-1].raw_output


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIKU_APPROVALS__COMMAND", "allow")


async def test_a_command_runs_in_the_clients_terminal_and_is_shown_there(
    workspace: Path, script: Script
) -> None:
    script(run("echo out; echo err >&2; exit 3"), {"text": "ok"})
    async with connected(Editor(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert list(pair.editor.terminals) == ["term-0"]
        assert result(pair.editor)["exitCode"] == 3
        assert result(pair.editor)["output"] == "out\nerr\n"
        shown = [
            c for u in pair.editor.of("tool_call_update") for c in u.content or () if c.type == "terminal"
        ]
        assert shown[0].terminal_id == "term-0"


async def test_a_client_without_terminals_is_asked_for_none(workspace: Path, script: Script) -> None:
    script(run("echo out"), {"text": "ok"})
    async with connected() as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert not pair.editor.terminals
        assert result(pair.editor)["output"] == "out\n"


async def test_the_terminals_own_variables_are_not_the_commands(
    workspace: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "of-the-editor")
    script(run("env"), {"text": "ok"})
    async with connected(Editor(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert pair.editor.terminals
        assert "of-the-editor" not in result(pair.editor)["output"]


# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
@pytest.mark.skipif(not bubblewrap(), reason="no sandbox works here")
async def test_in_the_clients_terminal_the_sandbox_holds(
    workspace: Path, tmp_path: Path, script: Script
) -> None:
    target = Path.home() / f"daiku-acp-{os.getpid()}"
    script(run(f"touch {target} inside"), {"text": "ok"})
    try:
        async with connected(Editor(), TERMINALS) as pair:
            await pair.prompt(await pair.new(workspace), "go")
            assert pair.editor.terminals
            assert not target.exists()
    finally:
        target.unlink(missing_ok=True)


async def test_a_command_that_is_refused_reaches_no_terminal(
    workspace: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_APPROVALS__COMMAND", "ask")
    script(run("touch here"), {"text": "ok"})
    async with connected(Editor(pick=lambda call, options: "reject_once"), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert not pair.editor.terminals
    assert not (workspace / "here").exists()


async def test_a_command_reads_what_it_is_given_and_else_the_end_of_file(
    workspace: Path, script: Script
) -> None:
    script(run("cat"), run("cat", stdin="given\n"), {"text": "ok"})
    async with connected(Editor(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert len(pair.editor.terminals) == 2
        assert result(pair.editor)["output"] == "given\n"


@pytest.mark.slow
@pytest.mark.parametrize("refuses", [frozenset[str](), frozenset({"kill_terminal"})])
async def test_a_command_that_never_ends_is_ended(
    workspace: Path, script: Script, refuses: frozenset[str]
) -> None:
    script(run("sleep 300 & sleep 300", timeout=1), {"text": "ok"})
    began = time.monotonic()
    async with connected(Editor(refuses=refuses), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert result(pair.editor)["exitCode"] == 124
        async with asyncio.timeout(5):
            await pair.editor.terminals["term-0"].wait()
    assert time.monotonic() - began < 10


@pytest.mark.slow
async def test_a_client_that_says_killed_and_did_not_is_not_believed(workspace: Path, script: Script) -> None:
    class Lies(Editor):
        async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> Any:
            return KillTerminalResponse()

    script(run("sleep 300", timeout=1), {"text": "ok"})
    async with connected(Lies(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert result(pair.editor)["exitCode"] == 124
        async with asyncio.timeout(5):
            await pair.editor.terminals["term-0"].wait()


async def test_a_turn_that_is_cancelled_ends_its_command(workspace: Path, script: Script) -> None:
    script(run("echo here; sleep 300"), {"text": "ok"})
    async with connected(Editor(), TERMINALS) as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "go"))
        await pair.editor.until(lambda: pair.editor.terminals)
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        async with asyncio.timeout(5):
            await pair.editor.terminals["term-0"].wait()


async def test_a_client_that_lies_about_its_terminals_is_worked_without(
    workspace: Path, script: Script
) -> None:
    script(run("echo out >> here"), {"text": "ok"})
    async with connected(Editor(refuses=frozenset({"create_terminal"})), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert result(pair.editor)["exitCode"] == 0
    assert (workspace / "here").read_text() == "out\n"


async def test_a_terminal_that_starts_something_else_or_nothing_runs_the_command_once_here(
    workspace: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor on another machine has no launcher; one that is slow finds the command taken back."""
    monkeypatch.setattr(in_terminal, "START_SECONDS", 0.3)
    late: list[tuple[str, list[str]]] = []

    class Elsewhere(Editor):
        async def create_terminal(
            self, session_id: str, command: str, args: Any = None, *rest: Any, **kwargs: Any
        ) -> CreateTerminalResponse:
            late.append((command, args or []))
            return await super().create_terminal(session_id, "sleep", ["300"])

    script(run("echo out >> here"), {"text": "ok"})
    async with connected(Elsewhere(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        [(command, args)] = late
        process = await asyncio.create_subprocess_exec(command, *args)
        assert await process.wait() == 127
    assert (workspace / "here").read_text() == "out\n"


async def test_the_command_that_the_editor_is_given_is_the_launcher_alone(
    workspace: Path, script: Script
) -> None:
    given: list[str] = []

    class Looks(Editor):
        async def create_terminal(
            self, session_id: str, command: str, args: Any = None, *rest: Any, **kwargs: Any
        ) -> CreateTerminalResponse:
            told = Path((args or [])[-1]) / "command.json"
            given.append(" ".join((command, *(args or ()))))
            assert json.loads(told.read_text())["cwd"] == str(workspace)
            assert told.parent.stat().st_mode & 0o077 == 0
            return await super().create_terminal(session_id, command, args, *rest, **kwargs)

    script(run("echo out"), {"text": "ok"})
    async with connected(Looks(), TERMINALS) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        assert result(pair.editor)["output"] == "out\n"
    assert "echo" not in given[0]
