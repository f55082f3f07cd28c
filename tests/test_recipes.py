"""Adding a tool, an agent, an event, a method, a sentence as the README says it; and what catches a forgotten piece."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.scratch import Scratch

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


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def test_a_tool_is_its_own_file_and_a_line_in_the_table(scratch: Scratch) -> None:
    (scratch.package / "tools/clock.py").write_text(CLOCK, "utf-8")
    assert "clock/now in clock.py" in scratch.watched("tools/test_table.py")
    scratch.edit(TOOL_IMPORT, TOOL_LINE)
    assert scratch.passes("tools/test_table.py")
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
    assert scratch.passes("agents/test_table.py")
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


GREETING_TYPES = '''"""A greeting for a client."""

from __future__ import annotations

from daiku.domain.base import Telling, Wire
from daiku.texts.text import Sentence


class GreetingParams(Wire):
    name: str


class GreetingResult(Telling):
    greeting: Sentence
'''
GREETING = '''"""The greeting of a client."""

from __future__ import annotations

from daiku.api.greeting import GreetingParams, GreetingResult
from daiku.lsp.connection import ClientConnection
from daiku.texts.text import text


async def greeting(c: ClientConnection, p: GreetingParams) -> GreetingResult:
    return GreetingResult(greeting=text("terminal.lines", count=p.name))
'''
METHOD_IMPORT = (
    "lsp/requests/methods.py",
    "from daiku.lsp.requests.grants import",
    "from daiku.api.greeting import GreetingParams, GreetingResult\nfrom daiku.lsp.requests.greeting import greeting\nfrom daiku.lsp.requests.grants import",
)
METHOD_ENTRY = (
    "lsp/requests/methods.py",
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


def test_a_method_is_its_types_its_function_and_an_entry(scratch: Scratch) -> None:
    scratch.write("server/daiku/api/greeting.py", GREETING_TYPES)
    scratch.write("server/daiku/lsp/requests/greeting.py", GREETING)
    scratch.bring("test_architecture.py", "lsp/conftest.py", "lsp/pair.py")
    assert "daiku.lsp.requests.greeting:greeting\n" in scratch.watched(UNUSED)
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


def test_a_sentence_is_a_line_in_each_languages_file(scratch: Scratch) -> None:
    scratch.write("server/daiku/core/text/farewell.py", FAREWELL)
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
        "from daiku.core.text.farewell import farewell; from daiku.texts.text import render;"
        "print(farewell('Ada'), render(farewell('Ada'), 'ja'))"
    )
    assert scratch.run("-c", program) == "See you, Ada! ではまた、Adaさん！\n"
