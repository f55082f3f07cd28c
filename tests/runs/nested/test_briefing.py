"""What a stage of work is given: the plan and step it is about, what the conversation found, the code as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.errors import UsageError
from daiku.domain.events import Edit, Event, MessageEvent, PlanEvent, ToolResponse
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, EditsMade
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.run.nested.briefing import FILE_LIMIT, MOST_NAMED, brief_from, write_request
from daiku.team.table import find_agent
from daiku.texts.text import Text
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each

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
            PlanEvent(plan=OLD),
            PlanEvent(plan=NEW),
            MessageEvent(role="assistant", text=Text(""), calls=(SEARCH,)),
            ToolResponse(id="call_1", tool="web/search", ok=True, result="", data=FOUND),
            Edit(files=(created,), checkpoint_id="checkpoint_1"),
            Edit(files=(edited,), checkpoint_id="checkpoint_2"),
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


@for_each("reference", ["2", "b", "step_0000000b"])
def test_a_step_is_named_by_number_name_or_id(reference: str) -> None:
    chunks = past(PlanEvent(plan=NEW), PlanEvent(plan=OLD))
    brief = brief_from(chunks, "x", step_id=reference)
    assert (brief.plan, brief.step_id) == (NEW, NEW.steps[1].step_id)
    assert brief_from(chunks, "x", plan_id=NEW.plan_id).plan == NEW
    assert brief_from(chunks, "x", step_id="a").plan == OLD, "the newest plan that has it"


def test_what_is_not_there_is_told() -> None:
    chunks = past(PlanEvent(plan=OLD))
    for plan, step, word in (
        ("plan_0", "", "plan 'plan_0'"),
        (OLD.plan_id, "7", "step '7'"),
        ("", "7", "step"),
    ):
        with pytest.raises(UsageError) as wrong:
            brief_from(chunks, "x", plan, step)
        assert word in wrong.value.failure.message


def unseen(_real: Path, _text: str) -> None:
    """Nobody keeps what was shown."""


async def test_the_runner_is_shown_the_code_as_it_is(tmp_path: Path) -> None:
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
    text, full = await write_request(find_agent("runner"), brief, workspace, unseen)
    assert full.code.startswith("File: `a.py`:\n```py\nx = 1\n```\n\n")
    assert f"`big.py` has {FILE_LIMIT + 1} characters: files__read shows it." in full.code
    assert "`gone.py` was deleted." in full.code
    assert "`lost.py`: " in full.code
    assert "`../outside.py`: " in full.code
    assert full.code in text
    assert await write_request(find_agent("coordinator"), brief, workspace, unseen) == ("Run.", brief)


async def test_the_coder_is_shown_the_projects_files_and_those_that_its_work_names(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "price.py").write_text("def price():\n    return 1\n")
    (tmp_path / "tax.py").write_text("RATE = 2\n")
    (tmp_path / "other.py").write_text("def other():\n    return price()\n")
    (tmp_path / "done.py").write_text("DONE = 1\n")
    (tmp_path / ".env").write_text("KEY=secret\n")
    plan = Plan(
        name="p",
        goal="g",
        steps=(
            Step(
                name="Mend `src/price.py`", description="See tax.py and .env.", acceptance=("cat missing.py",)
            ),
            Step(name="Then other.py"),
        ),
    )
    brief = Brief(
        request="Do the first step.",
        plan=plan,
        step_id=plan.steps[0].step_id,
        edits=EditsMade(files=(FileStat(path="done.py", kind="create", added=1),)),
    )
    seen: dict[str, str] = {}
    workspace = DiskWorkspace((tmp_path,))
    text, full = await write_request(
        find_agent("coder"), brief, workspace, lambda real, shown: seen.update({real.name: shown})
    )
    assert full == brief, "what can be read anew is not kept"
    listed, _, code = text.partition("The files that this is about, as they are now:")
    assert "The project's files:" in listed
    assert "other.py" in listed
    assert "def other" in listed, "what it defines is in the map"
    for part in ("File: `done.py`", "File: `src/price.py`", "File: `tax.py`"):
        assert part in code
    assert "other.py" not in code, "another step's file is not shown"
    assert "secret" not in text
    assert seen == {
        "done.py": "DONE = 1\n",
        "price.py": "def price():\n    return 1\n",
        "tax.py": "RATE = 2\n",
    }


async def test_what_the_coder_is_shown_is_bounded(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"file{number}.py").write_text(f"def name{number}():\n    return {number}\n" * 20)
    (tmp_path / "big.py").write_text("#" * (FILE_LIMIT + 1))
    request = "Change big.py, " + ", ".join(f"file{number}.py" for number in range(300))
    text, _ = await write_request(
        find_agent("coder"), Brief(request=request), DiskWorkspace((tmp_path,)), unseen
    )
    assert "`big.py` has" in text
    assert text.count("File: `") == MOST_NAMED - 1
    assert len(text) < 30_000


async def test_in_an_empty_project_the_coder_is_shown_nothing(tmp_path: Path) -> None:
    text, _ = await write_request(find_agent("coder"), Brief(request="x"), DiskWorkspace((tmp_path,)), unseen)
    assert text == "Context From User:\n```\nx\n```"
