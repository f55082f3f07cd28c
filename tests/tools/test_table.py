"""The table of tools is the truth: nothing is left out of it, and each tool says all that others read from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Never

from daiku.domain.base import JsonObject
from daiku.memory.memory import Memory
from daiku.memory.tool import build_memory_tools
from daiku.playbook.playbooks import Playbooks
from daiku.settings.config import PlaybookSettings
from daiku.tools.face import Face, format_subject
from daiku.tools.mcp import resources
from daiku.tools.table import build_builtin_tools, collect_faces
from daiku.tools.tool import Tool
from tests.cases import for_each
from tests.conftest import ROOT


def unread() -> Never:
    raise AssertionError("no tool is called here")


PLAYBOOKS = Playbooks(PlaybookSettings(), unread, unread)
TOOLS = (*build_builtin_tools(editor=True, playbooks=PLAYBOOKS), *build_memory_tools(Memory()))
"""Those of a memory and of playbooks are there only where one is."""
COMPUTED = {"lines", "files", "agents"}
"""Fields of a subject that are worked out from several arguments."""


def written() -> Iterator[tuple[str, str]]:
    """Every tool that a file of the server makes under a name of its own, with the file."""
    for path in sorted((ROOT / "server/daiku").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and (
                any(keyword.arg == "face" for keyword in node.keywords)
                or (isinstance(node.func, ast.Name) and node.func.id == "Tool")
            ):
                match node.args:
                    case [ast.Constant(value=str() as name), *_]:
                        yield path.name, name
                    case _:
                        pass


def test_every_tool_that_is_written_is_in_the_table() -> None:
    forgotten = [f"{name} in {file}" for file, name in written() if name not in {t.name for t in TOOLS}]
    assert forgotten == []
    assert len({name for _, name in written()}) == len(TOOLS)


@for_each("tool", TOOLS)
def test_every_tool_says_what_models_and_people_see_of_it(tool: Tool) -> None:
    assert 40 < len(tool.description) < 1200, tool.name
    assert tool.face is not None, tool.name
    assert collect_faces()[tool.name] == tool.face


@for_each(("name", "face"), collect_faces().items())
def test_a_face_speaks_both_languages_and_names_arguments_that_there_are(name: str, face: Face) -> None:
    assert face.icon
    assert face.label.en
    assert re.search(r"[\u3041-\u30ff\u4e00-\u9fff]", face.label.ja)
    tool = next((t for t in TOOLS if t.name == name), None)
    if tool is not None:
        fields = {f for group in re.findall(r"\{([^}]+)\}", face.subject) for f in group.split("|")}
        assert {f for f in fields if f.isidentifier()} <= {*tool.args.model_fields, *COMPUTED}


def test_the_tools_of_servers_have_faces_too() -> None:
    assert set(resources.FACES) <= set(collect_faces())


@for_each(
    ("subject", "args", "shown"),
    [
        ("{path}{lines}", {"path": "a.py"}, "a.py"),
        ("{path}{lines}", {"path": "a.py", "start_line": 3, "end_line": 9}, "a.py:3–9"),
        ("{path}{lines}", {"path": "a.py", "line": 4}, "a.py:4"),
        ("{path|glob|.}", {"glob": "*.py"}, "*.py"),
        ("{path|glob|.}", {}, "."),
        ("{pattern}[ · {path|glob}]", {"pattern": "x"}, "x"),
        ("{pattern}[ · {path|glob}]", {"pattern": "x", "path": "src"}, "x · src"),
        ("{files}", {"patch": "--- a/x\n+++ b/x\n@@\n*** Update File: y\n"}, "x, y"),
        ("{agents}", {"requests": [{"agent": "coder"}, {"agent": "runner"}, 3]}, "coder, runner"),
        ("{queries}", {"queries": ["one", "two"]}, "one, two"),
        ("{path}", {"path": None}, ""),
    ],
)
def test_a_subject_is_made_of_the_arguments(subject: str, args: JsonObject, shown: str) -> None:
    face = Face("plug", collect_faces()["files/read"].label, subject)
    assert format_subject(face, args) == shown
