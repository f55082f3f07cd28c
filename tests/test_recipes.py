"""Adding a tool, an agent, an event, a method, a sentence as docs/develop/extend.md says; and what catches each gap."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.scratch import Scratch

pytestmark = pytest.mark.slow  # each looks at a copy of the server several times

TYPESCRIPT = ROOT / "node_modules/typescript/bin/tsc"
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
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.part import Part
from daiku.domain.labels import Label

POET = Agent(
    "poet",
    Prompt("agents/poet"),
    tools=LOOKING,
    part=Part(label=Label("Poet", "詩人"), description="writes a verse about the work"),
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
    "from daiku.tools.find import",
    "from daiku.tools.clock import CLOCK_TOOLS\nfrom daiku.tools.find import",
)
AGENT_IMPORT = (
    "team/table.py",
    "from daiku.team.coding.planner import",
    "from daiku.team.coding.poet import POET\nfrom daiku.team.coding.planner import",
)
AGENT_SETTING = (
    "settings/config.py",
    "    reporter: AgentSettings",
    "    poet: AgentSettings = AgentSettings()\n    reporter: AgentSettings",
)
AGENT_LINE = ("team/table.py", " REPORTER, COMMITTER", " REPORTER, POET, COMMITTER")
EVENT_CLASS = (
    "domain/events.py",
    "class Notice(Localizable):",
    f"{VERSE.strip()}\n\n\nclass Notice(Localizable):",
)
EVENT_UNION = ("domain/events.py", "    | Compacted\n", "    | Compacted\n    | Verse\n")
BALLAD = """
class Ballad(Aside):
    type: ClassVar[str] = "ballad"
    verses: int


"""
BALLAD_CLASS = (
    "domain/events.py",
    "class Notice(Localizable):",
    f"{BALLAD.strip()}\n\n\nclass Notice(Localizable):",
)
BALLAD_UNION = ("domain/events.py", "    | Compacted\n", "    | Compacted\n    | Ballad\n")
BALLAD_SHOWN = (
    "fronts/cli/display/show.py",
    "            case LineEvent():\n",
    '            case Ballad(verses=verses):\n                self.line(f"{indent}♪ {verses}")\n            case LineEvent():\n',
)
BALLAD_IMPORT = ("fronts/cli/display/show.py", "    ApprovalAsked,\n", "    ApprovalAsked,\n    Ballad,\n")
BALLAD_LOOK = (
    "../../extension/webview/items/Items.tsx",
    "  review: (data)",
    "  ballad: (data) => <p>{data.verses}</p>,\n  review: (data)",
)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def test_a_tool_is_its_own_file_and_a_line_in_the_table(scratch: Scratch) -> None:
    (scratch.package / "tools/clock.py").write_text(CLOCK, "utf-8")
    assert "clock/now in clock.py" in scratch.watched("tools/test_table.py")
    scratch.edit(TOOL_IMPORT, TOOL_LINE)
    assert scratch.passes("tools/test_table.py")
    program = (
        "from daiku.tools.registry import ToolRegistry; from daiku.tools.table import build_builtin_tools;"
        "from daiku.fronts.cli.display.toollines import call_text; from tables import tables;"
        "print(ToolRegistry(build_builtin_tools()).spec('clock/now').description);"
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


@pytest.mark.slow(seconds=20)
def test_an_agent_is_its_own_file_its_prompt_and_a_line_in_the_table(scratch: Scratch) -> None:
    (scratch.package / "team/coding/poet.py").write_text(POET, "utf-8")
    (scratch.root / "prompts/agents/poet.j2").write_text("You write verses.\n", "utf-8")
    assert "'poet'" in scratch.watched("agents/test_table.py")
    scratch.edit(AGENT_IMPORT, AGENT_LINE)
    assert "poet.ja.j2" in scratch.watched("agents/test_table.py")
    (scratch.root / "prompts/agents/poet.ja.j2").write_text("詩を書きます。\n", "utf-8")
    assert "'poet'" in scratch.watched("agents/test_table.py")
    scratch.edit(AGENT_SETTING)
    assert scratch.passes("agents/test_table.py")
    program = (
        "from daiku.team.table import list_delegates; from daiku.tools.table import build_builtin_tools; from tables import tables;"
        "tools = build_builtin_tools(agents=list_delegates());"
        "print(next(t.description for t in tools if t.name == 'agent/handoff')); print(tables())"
    )
    said = scratch.run("-c", program)
    assert "poet (writes a verse about the work)" in said
    assert 'poet: "Poet"' in said


def shown(event: str) -> str:
    """A program that prints the state after an event, and how the terminal shows it."""
    return (
        "import io; from daiku.fronts.cli.display.show import Show; from daiku.fronts.cli.display.term import Terminal;"
        "from daiku.run.rules.state.fold import fold; from daiku.run.rules.state.state import State;"
        f"from daiku.domain.chunks import Chunk; from daiku.domain.events import EVENTS; event = EVENTS{event};"
        "stream = io.StringIO(); print(fold([event]) == State());"
        "Show(Terminal(stream, live=False, colours=False))("
        "Chunk(1, '2026-01-01T00:00:00.000Z', 's', 'r', 'coordinator', event, '{}')); print(stream.getvalue())"
    )


def test_an_event_that_is_one_line_is_a_class_in_the_table(scratch: Scratch) -> None:
    scratch.edit(EVENT_CLASS)
    assert "'Verse'" in scratch.watched("domain/test_events.py")
    scratch.edit(EVENT_UNION)
    assert "True\nA verse: O" in scratch.run("-c", shown("['verse'](text='O')"))
    scratch.generate()
    contract, tables = (
        (scratch.root / "extension/src" / name).read_text("utf-8")
        for name in ("contract.gen.ts", "pure/view/tables.gen.ts")
    )
    assert '{ type: "verse"; data: Verse }' in contract
    assert 'verse: { icon: "book", text: "A verse: {text}" }' in tables
    assert "'Verse'" in scratch.watched("test_api.py")


def test_an_event_that_changes_what_is_known_needs_its_fold(scratch: Scratch) -> None:
    scratch.edit(
        EVENT_CLASS, EVENT_UNION, ("domain/events.py", "class Verse(LineEvent)", "class Verse(Wire)")
    )
    assert "Expected code to be unreachable" in scratch.run("-c", shown("['verse'](text='O')"))


# `npm test` brings Node.js and its packages; pytest alone may run without them.
@pytest.mark.skipif(not shutil.which("node") or not TYPESCRIPT.exists(), reason="needs node and its packages")
def test_an_event_with_a_look_of_its_own_is_named_where_it_is_not_shown(scratch: Scratch) -> None:
    scratch.edit(BALLAD_CLASS, BALLAD_UNION)
    assert "Expected code to be unreachable" in scratch.run("-c", shown("['ballad'](verses=7)"))
    scratch.edit(BALLAD_IMPORT, BALLAD_SHOWN)
    assert "True\n♪ 7" in scratch.run("-c", shown("['ballad'](verses=7)"))
    scratch.generate()
    (scratch.root / "node_modules").symlink_to(ROOT / "node_modules")
    panel = ("node", str(TYPESCRIPT), "--noEmit", "-p", "extension/webview")
    assert "Items.tsx(96,7): error TS2741: Property 'ballad' is missing" in scratch.program(*panel)
    scratch.edit(BALLAD_LOOK)
    assert scratch.program(*panel) == ""


GREETING_TYPES = '''"""A greeting for a client."""

from __future__ import annotations

from daiku.domain.base import Localizable, Wire
from daiku.texts.text import Text


class GreetingParams(Wire):
    name: str


class GreetingResult(Localizable):
    greeting: Text
'''
GREETING = '''"""The greeting of a client."""

from __future__ import annotations

from daiku.api.greeting import GreetingParams, GreetingResult
from daiku.fronts.lsp.connection import ClientConnection
from daiku.texts.text import text


async def greeting(c: ClientConnection, p: GreetingParams) -> GreetingResult:
    return GreetingResult(greeting=text("terminal.lines", count=p.name))
'''
METHOD_IMPORT = (
    "fronts/lsp/requests/methods.py",
    "from daiku.fronts.lsp.requests.playbook import",
    "from daiku.api.greeting import GreetingParams, GreetingResult\nfrom daiku.fronts.lsp.requests.greeting import greeting\nfrom daiku.fronts.lsp.requests.playbook import",
)
METHOD_ENTRY = (
    "fronts/lsp/requests/methods.py",
    '    "daiku/agents": Method(',
    '    "daiku/greeting": Method(GreetingParams, GreetingResult, greeting),\n    "daiku/agents": Method(',
)
UNUSED = "test_dead.py::test_nothing_is_there_that_nothing_uses"
GREETED = """
import asyncio, pathlib
from tests.lsp.conftest import connected
async def main():
    async with connected(pathlib.Path.cwd(), client={"locale": "ja"}) as server:
        print(*server.client.heard, await server.client.request("daiku/greeting", {"name": "Ada"}))
asyncio.run(main())
"""


@pytest.mark.slow(seconds=50)
def test_a_method_is_its_types_its_function_and_an_entry(scratch: Scratch) -> None:
    scratch.write("server/daiku/api/greeting.py", GREETING_TYPES)
    scratch.write("server/daiku/fronts/lsp/requests/greeting.py", GREETING)
    scratch.bring("test_architecture.py", "lsp/conftest.py", "lsp/pair.py")
    assert "daiku.fronts.lsp.requests.greeting:greeting\n" in scratch.watched(UNUSED)
    scratch.edit(METHOD_IMPORT, METHOD_ENTRY)
    assert scratch.passes(UNUSED)
    missing = scratch.watched("test_api.py")
    assert "'GreetingParams'" in missing
    assert "'GreetingResult'" in missing
    assert "AssertionError: daiku/greeting" in missing, "what is generated is stale"
    scratch.generate()
    scratch.write("tests/golden/wire/GreetingParams.json", '{"name": "Ada"}')
    scratch.write("tests/golden/wire/GreetingResult.json", '{"greeting": "Ada lines"}')
    assert scratch.passes("test_api.py")
    greeted = scratch.run("-c", GREETED)
    assert "'daiku/greeting'" in greeted, "`initialize` tells of it"
    assert "{'greeting': 'Ada 行'}" in greeted
    contract = (scratch.root / "extension/src/contract.gen.ts").read_text("utf-8")
    assert '"daiku/greeting": [params: GreetingParams, result: GreetingResult];' in contract


FAREWELL = '''"""What is said at the end."""

from daiku.texts.text import Text, text


def farewell(name: str) -> Text:
    return text("farewell.see_you", name=name)
'''


@pytest.mark.slow(seconds=15)
def test_a_sentence_is_a_line_in_each_languages_file(scratch: Scratch) -> None:
    scratch.write("server/daiku/texts/rules/farewell.py", FAREWELL)
    scratch.say("en", {"farewell.never": "Never said"})
    wrong = scratch.watched("texts/test_catalogue.py")
    assert "farewell.py:7: farewell.see_you(['name']) for None" in wrong
    assert "ja.json: {'farewell.never'}" in wrong
    assert "AssertionError: ['farewell.never']" in wrong
    shutil.copy(ROOT / "server/daiku/texts/en.json", scratch.package / "texts")
    scratch.say("en", {"farewell.see_you": "See you, {name}!"})
    scratch.say("ja", {"farewell.see_you": "ではまた、{who}さん！"})
    assert "assert ['farewell.see_you'] == []" in scratch.watched("texts/test_catalogue.py")
    scratch.say("ja", {"farewell.see_you": "ではまた、{name}さん！"})
    assert scratch.passes("texts/test_catalogue.py")
    program = (
        "from daiku.texts.rules.farewell import farewell; from daiku.texts.text import render;"
        "print(farewell('Ada'), render(farewell('Ada'), 'ja'))"
    )
    assert scratch.run("-c", program) == "See you, Ada! ではまた、Adaさん！\n"
