"""What a stage of work is given: the plan and step it is about, what the conversation found, the code as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.agents.agent import find_agent
from daiku.domain.base import JsonObject
from daiku.domain.errors import UsageError
from daiku.domain.events import Chunk, Edited, Event, MessageSaid, PlanChanged, ToolResponded, encode_event
from daiku.domain.handovers import Brief, EditsMade
from daiku.domain.patches import FileStat
from daiku.domain.plans import Plan, Step
from daiku.domain.tools import ToolCall
from daiku.runs.briefing import FILE_LIMIT, brief_from, told
from daiku.tools.disk import DiskWorkspace

OLD = Plan(name="Old", goal="g", steps=(Step(name="a"),))
NEW = Plan(name="New", goal="g", steps=(Step(name="a"), Step(name="b", step_id="step_0000000b")))
SEARCH = ToolCall(id="call_1", tool="web/search", args={"query": "q"})
FOUND: JsonObject = {"results": [{"query": "q", "url": "https://a.example.com/", "title": "A", "text": "x"}]}


def past(*events: Event) -> list[Chunk]:
    return [
        Chunk(number, "", "ses", "run", "coder", event, encode_event(event))
        for number, event in enumerate(events, 1)
    ]


def test_the_newest_plan_findings_and_edits_of_the_conversation_are_in_the_brief() -> None:
    created = FileStat(path="a.py", kind="create", added=2)
    edited = FileStat(path="a.py", kind="edit", added=1, removed=1)
    brief = brief_from(
        past(
            PlanChanged(plan=OLD),
            PlanChanged(plan=NEW),
            MessageSaid(role="assistant", text="", calls=(SEARCH,)),
            ToolResponded(id="call_1", tool="web/search", ok=True, result="", data=FOUND),
            Edited(files=(created,), checkpoint_id="checkpoint_1"),
            Edited(files=(edited,), checkpoint_id="checkpoint_2"),
        ),
        "Do it.",
    )
    assert (brief.request, brief.plan, brief.step_id) == ("Do it.", NEW, "")
    assert brief.findings is not None
    assert [f.url for f in brief.findings.results] == ["https://a.example.com/"]
    assert brief.edits is not None
    assert [(f.path, f.kind, f.added, f.removed) for f in brief.edits.files] == [("a.py", "create", 3, 1)]
    assert brief.edits.checkpoints == ("checkpoint_1", "checkpoint_2")
    assert brief_from([], "x") == Brief(request="x")


@pytest.mark.parametrize("reference", ["2", "b", "step_0000000b"])
def test_a_step_is_named_by_number_name_or_id(reference: str) -> None:
    chunks = past(PlanChanged(plan=NEW), PlanChanged(plan=OLD))
    brief = brief_from(chunks, "x", step_id=reference)
    assert (brief.plan, brief.step_id) == (NEW, NEW.steps[1].step_id)
    assert brief_from(chunks, "x", plan_id=NEW.plan_id).plan == NEW
    assert brief_from(chunks, "x", step_id="a").plan == OLD, "the newest plan that has it"


def test_what_is_not_there_is_told() -> None:
    chunks = past(PlanChanged(plan=OLD))
    for plan, step, word in (
        ("plan_0", "", "plan 'plan_0'"),
        (OLD.plan_id, "7", "step '7'"),
        ("", "7", "step"),
    ):
        with pytest.raises(UsageError) as wrong:
            brief_from(chunks, "x", plan, step)
        assert word in wrong.value.failure.message


async def test_the_runner_is_shown_the_code_as_it_is_and_the_coder_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "big.py").write_text("#" * (FILE_LIMIT + 1))
    files = (
        FileStat(path="a.py", kind="edit", added=1),
        FileStat(path="big.py", kind="create", added=1),
        FileStat(path="gone.py", kind="delete", removed=1),
        FileStat(path="lost.py", kind="edit", added=1),
        FileStat(path="../outside.py", kind="edit", added=1),
    )
    brief = Brief(request="Run.", edits=EditsMade(files=files))
    workspace = DiskWorkspace((tmp_path,))
    text, full = await told(find_agent("runner"), brief, workspace)
    assert full.code.startswith("File: `a.py`:\n```py\nx = 1\n```\n\n")
    assert f"`big.py` has {FILE_LIMIT + 1} characters: files/read shows it." in full.code
    assert "`gone.py` was deleted." in full.code
    assert "`lost.py`: " in full.code
    assert "`../outside.py`: " in full.code
    assert full.code in text
    _, unchanged = await told(find_agent("coder"), brief, workspace)
    assert unchanged == brief
    assert await told(find_agent("coordinator"), brief, workspace) == ("Run.", brief)
