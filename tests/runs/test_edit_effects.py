"""An edit is judged by the file that it makes, in every approval mode, also when nothing else asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ApprovalAsked, ApprovalDecision, ToolResponse
from daiku.domain.runs import ApprovalMode
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app
from tests.runs.test_mcp import Person

EVIL = "https://evil.example/s"


def write(path: str, content: str) -> dict[str, Any]:
    return {"calls": [{"tool": "files/write", "args": {"path": path, "content": content}}]}


def edit(path: str, search: str, replace: str) -> dict[str, Any]:
    edits = [{"search": search, "replace": replace}]
    return {"calls": [{"tool": "files/edit", "args": {"path": path, "edits": edits}}]}


def move(path: str, to: str) -> dict[str, Any]:
    return {"calls": [{"tool": "files/move", "args": {"path": path, "to": to}}]}


HARMFUL = [
    ("a.json", write("a.json", '{"$schema": "./local.json"}'), edit("a.json", "./local", f"{EVIL}")),
    ("package.json", write("package.json", '{"scripts": {"post": "./x"}}'), edit("package.json", 'post"', 'postinstall"')),
    ("README.md", write("README.md", f"[a]({EVIL})\n"), edit("README.md", "[a]", "![a]")),
    ("a.yml", write("a.yml", f"# schema={EVIL}\n"), edit("a.yml", "# schema", "# $schema")),
    ("package.json", write("a.txt", '{"scripts": {"prepare": "./x"}}'), move("a.txt", "package.json")),
]  # fmt: skip


async def play(
    folder: Path, approvals: ApprovalMode, *lines: dict[str, Any], decision: ApprovalDecision | None = None
) -> tuple[list[ApprovalAsked], list[ToolResponse]]:
    (folder / "project").mkdir(exist_ok=True)
    app = make_app(folder, *lines, {"text": "done"})
    watch = Watch() if decision is None else Person(app, decision)
    await app.runs.run(RunRequest("go", approvals=approvals, attended=decision is not None), watch)
    await app.aclose()
    events = [chunk.event for chunk in watch.chunks]
    return (
        [event for event in events if isinstance(event, ApprovalAsked)],
        [event for event in events if isinstance(event, ToolResponse)],
    )


@pytest.mark.parametrize("approvals", ["edits", "all", "work"])
@pytest.mark.parametrize("case", range(len(HARMFUL)))
async def test_two_harmless_calls_do_not_make_a_harmful_file(
    tmp_path: Path, approvals: ApprovalMode, case: int
) -> None:
    path, first, second = HARMFUL[case]
    asked, answers = await play(tmp_path, approvals, first, second)
    assert [answer.ok for answer in answers] == [True, False]
    assert answers[-1].outcome in ("denied", "unattended")
    assert not asked
    made = tmp_path / "project" / path
    assert not made.is_file() or not {EVIL, "postinstall"} & set(made.read_text().split('"'))


@pytest.mark.parametrize("approvals", ["edits", "all", "work"])
async def test_an_edit_that_keeps_what_a_file_does_is_not_asked_about(
    tmp_path: Path, approvals: ApprovalMode
) -> None:
    (tmp_path / "project").mkdir()
    mine = '{"scripts": {"postinstall": "./mine", "test": "old"}}\n'
    (tmp_path / "project/package.json").write_text(mine)
    asked, answers = await play(
        tmp_path, approvals, edit("package.json", '"postinstall": "./mine", "test": "old"', '"postinstall": "./mine", "test": "new"')
    )  # fmt: skip
    assert not asked
    assert [answer.ok for answer in answers] == [True]
    assert '"new"' in (tmp_path / "project/package.json").read_text()


@pytest.mark.parametrize("decision", ["allow_once", "reject_once"])
async def test_a_user_is_told_the_address_and_decides(tmp_path: Path, decision: ApprovalDecision) -> None:
    path, first, second = HARMFUL[0]
    asked, answers = await play(tmp_path, "all", first, second, decision=decision)
    assert [EVIL in each.why for each in asked] == [True]
    assert not asked[0].remember
    assert [answer.ok for answer in answers] == [True, decision == "allow_once"]
    assert (EVIL in (tmp_path / "project" / path).read_text()) == (decision == "allow_once")
