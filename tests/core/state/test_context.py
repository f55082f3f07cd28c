"""What the model reads beside the person's words: what they pointed at, and how the plans stand, each told once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ToolResponse
from daiku.domain.runs import ContextItem, Position, Range
from daiku.domain.work.plans import Plan, Step
from daiku.run.request import RunRequest, with_paths
from daiku.run.rules.state.context import render_prompt
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.turns import PROGRESS
from daiku.team.rules.plans.transitions import render_checklist
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, make_app


def span(first: int, last: int, character: int = 3) -> Range:
    return Range(start=Position(line=first, character=0), end=Position(line=last, character=character))


def test_a_selection_is_told_by_its_path_in_the_workspace_and_its_lines(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a b.py").write_text("x\n" * 9)
    uri = (tmp_path / "src/a b.py").as_uri()
    workspace = DiskWorkspace([tmp_path])
    for where, lines in (
        (span(2, 4), "3-5"),
        (span(2, 5, 0), "3-5"),
        (span(2, 2), "3"),
        (span(0, 1, 0), "1"),
    ):
        items = with_paths((ContextItem(kind="selection", uri=uri, range=where, text="x"),), workspace)
        assert items[0].uri == uri
        assert f'<context kind="selection" path="src/a b.py:{lines}">' in render_prompt("do it", items)


def test_what_is_no_file_of_the_workspace_keeps_its_address(tmp_path: Path) -> None:
    items = (
        ContextItem(kind="url", uri="https://example.org/a"), ContextItem(kind="file", uri="file:///elsewhere/a.py")
    )  # fmt: skip
    told = render_prompt("do it", with_paths(items, DiskWorkspace([tmp_path])))
    assert 'path="https://example.org/a"' in told
    assert 'path="file:///elsewhere/a.py"' in told


def test_a_goal_that_is_the_name_is_told_once() -> None:
    plan = Plan(name="Mend it", goal="Mend it", steps=(Step(name="one"),))
    assert render_checklist(plan).count("Mend it") == 1
    assert "Do more" in render_checklist(plan.model_copy(update={"goal": "Do more"}))


@pytest.mark.parametrize("mode", ["plan", "act"])
async def test_the_result_that_shows_a_plan_does_not_tell_of_it_again(tmp_path: Path, mode: Any) -> None:
    (tmp_path / "project").mkdir()
    propose = {"tool": "plan/propose", "args": {"goal": "Mend it", "steps": [{"name": "one"}]}}
    update = {"tool": "plan/update_step", "args": {"step_id": "1", "status": "in_progress"}}
    app = make_app(tmp_path, {"calls": [propose]}, {"calls": [update]}, {"text": "Shall I?"})
    watch = Watch()
    await app.runs.run(RunRequest("go", mode=mode), watch)
    shown, refused = (c.event for c in watch.chunks if isinstance(c.event, ToolResponse))
    assert "plan__approve with" in refused.result
    told = fold(c.event for c in watch.chunks).conversation.messages
    assert not [m for m in told if PROGRESS in m.text]
    assert shown.result.count("Mend it") == 1
    await app.aclose()
