"""The tools over what an editor knows, through the whole server and a client that answers for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lsp.conftest import connected, write_script

Json = dict[str, Any]


def place(path: Path, line: int, start: int, end: int) -> Json:
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"uri": path.as_uri(), "range": span}


async def results(root: Path, answers: dict[str, Callable[[Json], Json]], *calls: Json) -> list[Json]:
    """What the model is told by `calls`, with an editor that answers by `answers`."""
    model = write_script(root, {"calls": list(calls)}, {"text": "Seen."}, name="script.jsonl")
    async with connected(root, client={"approvals": True, "editor": bool(answers)}) as server:
        server.client.on.update(answers)
        request = {"text": "look", "model": model, "partialResultToken": "t"}
        await server.client.request("daiku/chat", request)
        return [c["data"] for c in server.client.chunks("t") if c["type"] == "tool_response"]


async def test_problems_are_told_the_worst_first(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\ny = z\n")
    warning = {**place(source, 0, 0, 1), "severity": "warning", "message": "x is unused", "source": "lint"}
    error = {**place(source, 1, 4, 5), "severity": "error", "message": "z is not defined", "source": "py"}
    (told,) = await results(
        tmp_path,
        {"daiku/editor/diagnostics": lambda _: {"diagnostics": [warning, error]}},
        {"tool": "editor/diagnostics", "args": {"path": "a.py"}},
    )
    assert told["result"].splitlines() == [
        "1 error, 1 warning in a.py:",
        "a.py:2:5 error: z is not defined [py]",
        "a.py:1:1 warning: x is unused [lint]",
    ]


async def test_a_name_on_a_line_leads_to_its_definition_and_uses(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("def tax():\n    return 1\n\ntotal = tax()\n")
    asked: list[Json] = []

    def definition(params: Json) -> Json:
        asked.append(params["position"])
        return {"locations": [place(source, 0, 4, 7)]}

    defined, used, unknown, outside = await results(
        tmp_path,
        {"daiku/editor/definition": definition, "daiku/editor/references": lambda _: {"locations": []}},
        {"tool": "editor/definition", "args": {"path": "a.py", "line": 4, "symbol": "tax"}},
        {"tool": "editor/references", "args": {"path": "a.py", "line": 1, "character": 5}},
        {"tool": "editor/definition", "args": {"path": "a.py", "line": 2, "symbol": "tax"}},
        {"tool": "editor/definition", "args": {"path": "a.py", "line": 99, "symbol": "tax"}},
    )
    assert asked == [{"line": 3, "character": 8}]
    assert defined["result"] == "a.py:1:5 | def tax():"
    assert used["ok"]
    assert "knows no reference" in used["result"]
    assert (unknown["ok"], "does not hold 'tax'" in unknown["result"]) == (False, True)
    assert (outside["ok"], "4 lines" in outside["result"]) == (False, True)


async def test_no_line_of_a_closed_file_is_told(tmp_path: Path) -> None:
    (tmp_path / ".daikuignore").write_text("closed.py\n")
    (tmp_path / "closed.py").write_text("KEY = 'canary'\n")
    (tmp_path / "a.py").write_text("from closed import KEY\n")
    closed = place(tmp_path / "closed.py", 0, 0, 3)
    named, led = await results(
        tmp_path,
        {"daiku/editor/definition": lambda _: {"locations": [closed]}},
        {"tool": "editor/definition", "args": {"path": "closed.py", "line": 1, "symbol": "tax"}},
        {"tool": "editor/definition", "args": {"path": "a.py", "line": 1, "symbol": "KEY"}},
    )
    assert not named["ok"]
    assert "canary" not in named["result"]
    assert led["result"].rstrip() == "closed.py:1:1 |"


async def test_without_an_editor_the_tools_are_not_there(tmp_path: Path) -> None:
    (told,) = await results(tmp_path, {}, {"tool": "editor/diagnostics", "args": {}})
    assert not told["ok"]
    assert "There is no tool" in told["result"]
