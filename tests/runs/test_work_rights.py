"""What of a person's rights, memories and settings a run on a work item gets: what they allowed for its folder, no more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, AppParts, build
from daiku.dataclass import replace
from daiku.domain.config import MCPServerSettings, SandboxSettings
from daiku.domain.events import ApprovalAsked, RunStarted, ToolResponse
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolResult
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Recollection, Remembers
from daiku.tools.tool import Args, Tool, ToolContext
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, make_app
from tests.runs.test_mcp import FINE, Person, app_with
from tests.tools.mcp.play import SERVICES


def item_app(folder: Path, *lines: dict[str, Any], given: AppParts = AppParts(), **changed: Any) -> App:
    """An App for a copy of `project`, whose rights are those of `project`."""
    for name in ("project", "copy"):
        (folder / name).mkdir(exist_ok=True)
    plain = make_app(folder, *lines)
    plain.journal.close()
    return build(
        plain.config.model_copy(update=changed),
        workspace=DiskWorkspace((folder / "copy",)),
        home=folder / "home",
        own=False,
        parts=replace(given, allowed_in=(folder / "project",)),
    )


def results(watch: Watch) -> list[ToolResponse]:
    return [chunk.event for chunk in watch.chunks if isinstance(chunk.event, ToolResponse)]


@pytest.mark.parametrize("approvals", ["work", "all"])
async def test_a_tool_of_such_a_run_asks_nobody_and_commands_get_nothing_of_the_persons(
    tmp_path: Path, approvals: ApprovalMode
) -> None:
    """X.14: what asks in the middle of its call cannot wait for a comment."""
    contexts: list[ToolContext] = []

    async def look(_: Args, context: ToolContext) -> ToolResult:
        contexts.append(context)
        return ToolResult(ok=True, text="seen")

    given = AppParts(tools=(Tool("plug/look", "none", Args, look, description="Looks."),))
    own = SandboxSettings(mode="off", environment=("DB_PASSWORD",), write=(str(tmp_path),), network=True)
    call = {"tool": "tools/call", "args": {"tool": "plug__look", "args": {}}}
    app = item_app(tmp_path, {"calls": [call]}, {"text": "done"}, given=given, sandbox=own)
    await app.runs.run(RunRequest("look", approvals=approvals), Watch())
    await app.aclose()
    (context,) = contexts
    sandbox = context.config.sandbox
    held_in = (context.ask is None, sandbox.environment, sandbox.write, sandbox.network, sandbox.mode)
    assert held_in == ((True, (), (), False, "off") if approvals == "work" else (False, *_open(own), "off"))


def _open(own: SandboxSettings) -> tuple[Any, ...]:
    return own.environment, own.write, own.network


class Kept(Remembers):
    async def recall(self, question: str, *, session: str = "") -> tuple[Recollection, ...]:
        return await self.search(question)

    async def remember(self, text: str, *, session: str = "", origin: str = "") -> str:
        return "m2"

    async def search(self, question: str, most: int = 10) -> tuple[Recollection, ...]:
        return (Recollection(id="m1", text="my doctor's number is CANARY", score=1.0),)

    async def forget(self, memory_id: str) -> bool:
        return True


@pytest.mark.parametrize("approvals", ["work", "all"])
async def test_what_a_person_had_kept_is_not_told_in_such_a_run(
    tmp_path: Path, approvals: ApprovalMode
) -> None:
    """X.14: what the run says is read by others."""
    search = {"tool": "memory/search", "args": {"query": "doctor"}}
    app = item_app(tmp_path, {"calls": [search]}, {"text": "done"}, given=AppParts(memory=Kept()))
    watch = Watch()
    await app.runs.run(RunRequest("What is my doctor's number?", approvals=approvals, tainted=True), watch)
    await app.aclose()
    (started,) = [chunk.event for chunk in watch.chunks if isinstance(chunk.event, RunStarted)]
    told = "CANARY" in str(watch.chunks)
    assert (told, len(started.recalled)) == ((False, 0) if approvals == "work" else (True, 1))


async def test_what_a_person_rejected_for_the_folder_is_rejected_in_its_copies(tmp_path: Path) -> None:
    """X.14: their word for always holds where they are not there."""
    write = {"tool": "files/write", "args": {"path": "a.txt", "content": "x"}}
    app = item_app(tmp_path, {"calls": [write]}, {"text": "done"})
    app.grants.remember(str(tmp_path / "project"), "edit", "reject")
    watch = Watch()
    await app.runs.run(RunRequest("write", approvals="work", tainted=True), watch)
    await app.aclose()
    assert [result.outcome for result in results(watch)] == ["denied"]
    assert not (tmp_path / "copy/a.txt").exists()


@pytest.mark.slow  # real MCP servers
@pytest.mark.parametrize("consented", [True, False])
async def test_a_server_that_was_allowed_starts_where_it_was_allowed_and_never_from_the_copy(
    tmp_path: Path, consented: bool
) -> None:
    """The copy may hold a stranger's branch: the program of the same name in it is not the one that was allowed."""
    canary = tmp_path / "canary"
    for name in ("project", "copy"):
        (tmp_path / name).mkdir()
    wild = SERVICES / "mcp_wild.py"
    (tmp_path / "project/server.py").write_text(
        f"import runpy, sys\nsys.argv = [{str(wild)!r}, 'plain']\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    (tmp_path / "copy/server.py").write_text(f"open({str(canary)!r}, 'w').write('started')\n")
    server = MCPServerSettings(mcp_server_name="wild", command=(sys.executable, "server.py"))
    if consented:
        app = app_with(tmp_path, server, FINE)
        await app.runs.run(RunRequest("go"), Person(app, "allow_always"))
        await app.aclose()
    app = item_app(tmp_path, {"calls": [FINE]}, {"text": "done"}, mcp_servers=(server,))
    person = Person(app, "allow_always")
    await app.runs.run(RunRequest("go", approvals="work", tainted=True), person)
    await app.aclose()
    assert [result.ok for result in results(person)] == [consented]
    assert person.of(ApprovalAsked) == []
    assert not canary.exists()
