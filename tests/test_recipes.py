"""Adding a tool, an agent, an event as the README says it, in a scratch copy; and what catches each forgotten piece."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # each looks at a copy of the server several times

CLOCK = """
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext


class ClockArgs(Args):
    zone: str


async def now(args: ClockArgs, context: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text="noon")


CLOCK_TOOLS = (
    Tool(
        "clock/now",
        "read",
        ClockArgs,
        now,
        description="Tell what time it is in the time zone `zone` right now.",
        face=Face("watch", Label("Look at the clock", "時計を見る"), "{zone}"),
    ),
)
"""
POET = """
from daiku.agents.agent import LOOKING, Agent
from daiku.domain.labels import Label

POET = Agent(
    name="poet",
    label=Label("Poet", "詩人"),
    prompt="agents/poet",
    description="writes a verse about the work",
    tools=LOOKING,
)
"""
VERSE = """
class Verse(LineEvent):
    type: ClassVar[str] = "verse"
    line: ClassVar[Line | None] = Line("book", Label("A verse: {text}", "詩: {text}"))
    text: str


"""
TOOL_LINE = ("tools/table.py", "        *PLAN_TOOLS,\n", "        *CLOCK_TOOLS,\n        *PLAN_TOOLS,\n")
TOOL_IMPORT = (
    "tools/table.py",
    "from daiku.tools.ask import",
    "from daiku.tools.clock import CLOCK_TOOLS\nfrom daiku.tools.ask import",
)
AGENT_IMPORT = (
    "agents/table.py",
    "from daiku.agents.coding.planner import",
    "from daiku.agents.coding.poet import POET\nfrom daiku.agents.coding.planner import",
)
AGENT_LINE = ("agents/table.py", " REPORTER, COMMITTER", " REPORTER, POET, COMMITTER")
EVENT_CLASS = ("domain/events.py", "class Compacted(Wire):", f"{VERSE.strip()}\n\n\nclass Compacted(Wire):")
EVENT_UNION = ("domain/events.py", "    | Compacted\n", "    | Compacted\n    | Verse\n")
EVENT_FOLD = (
    "core/state/fold.py",
    "case AgentStart() | AgentEnd() |",
    "case Verse() | AgentStart() | AgentEnd() |",
)
EVENT_FOLD_IMPORT = ("core/state/fold.py", "    AgentEnd,\n", "    AgentEnd,\n    Verse,\n")
Edit = tuple[str, str, str]


class Scratch:
    """A copy of the server with its prompts, the generators, and the tests that watch the tables."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "server" / "daiku"
        keep = shutil.ignore_patterns("__pycache__")
        for folder in ("server/daiku", "prompts", ".dev"):
            shutil.copytree(ROOT / folder, root / folder, ignore=keep)
        (root / "extension/l10n").mkdir(parents=True)
        for name in (
            "conftest.py",
            "cases.py",
            "tools/test_table.py",
            "agents/test_table.py",
            "domain/test_events.py",
        ):
            (root / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tests" / name, root / "tests" / name)

    def edit(self, *edits: Edit) -> None:
        for name, old, new in edits:
            path = self.package / name
            text = path.read_text("utf-8")
            assert old in text, f"{name} has no {old!r} any more: mend the recipe"
            path.write_text(text.replace(old, new, 1), "utf-8")

    def run(self, *arguments: str) -> str:
        """What Python says there, both streams."""
        places = [str(self.root / "server"), str(self.root / ".dev"), str(self.root)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def watched(self, test: str) -> str:
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{test}")


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def test_a_tool_is_its_own_file_and_a_line_in_the_table(scratch: Scratch) -> None:
    (scratch.package / "tools/clock.py").write_text(CLOCK, "utf-8")
    assert "clock/now in clock.py" in scratch.watched("tools/test_table.py")
    scratch.edit(TOOL_IMPORT, TOOL_LINE)
    assert "failed" not in scratch.watched("tools/test_table.py")
    program = (
        "from daiku.tools.registry import ToolRegistry; from daiku.tools.table import builtin_tools;"
        "from daiku.cli.display.toollines import call_text; from tables import tables;"
        "print(ToolRegistry(builtin_tools()).spec('clock/now').description);"
        "print(call_text('clock/now', {'zone': 'UTC'})); print(tables())"
    )
    said = scratch.run("-c", program)
    assert "Tell what time it is" in said
    assert "Look at the clock UTC" in said
    assert '"clock/now": { icon: "watch", title: "Look at the clock", subject: "{zone}" }' in said


def test_a_tool_without_a_face_is_named(scratch: Scratch) -> None:
    bare = CLOCK.replace(
        '        face=Face("watch", Label("Look at the clock", "時計を見る"), "{zone}"),\n', ""
    )
    (scratch.package / "tools/clock.py").write_text(bare, "utf-8")
    scratch.edit(TOOL_IMPORT, TOOL_LINE)
    assert "AssertionError: clock/now" in scratch.watched("tools/test_table.py")


def test_an_agent_is_its_own_file_its_prompt_and_a_line_in_the_table(scratch: Scratch) -> None:
    (scratch.package / "agents/coding/poet.py").write_text(POET, "utf-8")
    (scratch.root / "prompts/agents/poet.j2").write_text("You write verses.\n", "utf-8")
    assert "'poet'" in scratch.watched("agents/test_table.py")
    scratch.edit(AGENT_IMPORT, AGENT_LINE)
    assert "failed" not in scratch.watched("agents/test_table.py")
    program = (
        "from daiku.agents.table import delegates; from daiku.tools.table import builtin_tools; from tables import tables;"
        "tools = builtin_tools(agents=delegates());"
        "print(next(t.description for t in tools if t.name == 'agent/handoff')); print(tables())"
    )
    said = scratch.run("-c", program)
    assert "poet (writes a verse about the work)" in said
    assert 'poet: "Poet"' in said


def test_an_event_is_a_class_in_the_table_and_its_fold(scratch: Scratch) -> None:
    scratch.edit(EVENT_CLASS)
    assert "'Verse'" in scratch.watched("domain/test_events.py")
    scratch.edit(EVENT_UNION)
    fold = "from daiku.core.state.fold import fold; from daiku.domain.events import EVENTS; fold([EVENTS['verse'](text='O')])"
    assert "Expected code to be unreachable" in scratch.run("-c", fold)  # what both type checkers say too
    scratch.edit(EVENT_FOLD_IMPORT, EVENT_FOLD)
    program = (
        "import io; from daiku.cli.display.show import Show; from daiku.cli.display.term import Terminal;"
        "from daiku.domain.chunks import Chunk; from daiku.domain.events import EVENTS;"
        "from contract import contract; from tables import tables; stream = io.StringIO();"
        "verse = EVENTS['verse'](text='O'); Show(Terminal(stream, live=False, colours=False))("
        "Chunk(1, '2026-01-01T00:00:00.000Z', 's', 'r', 'coordinator', verse, '{}'));"
        "print(stream.getvalue(), contract(), tables())"
    )
    said = scratch.run("-c", program)
    assert scratch.run("-c", fold) == ""
    assert "A verse: O" in said
    assert '{ type: "verse"; data: Verse }' in said
    assert 'verse: { icon: "book", text: "A verse: {text}" }' in said
