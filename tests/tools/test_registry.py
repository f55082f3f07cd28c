"""The catalogue: names, schemas, arguments, time and failure of tool calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from pydantic import Field, JsonValue

from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.patches import SearchReplace
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.text import Text
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from daiku.tools.tool import Args, Preview, Tool, ToolContext
from tests.cases import for_each

CONTEXT = cast(ToolContext, None)  # the registry hands it on and never looks inside


class EchoArgs(Args):
    path: str
    start_line: int | None = None
    title: str = ""
    limit: int = 5
    edits: tuple[SearchReplace, ...] = Field(default=(), description="what to replace")


async def echo(args: EchoArgs, context: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text=args.model_dump_json())


def tool(
    name: str = "files/read",
    run: Callable[[Any, ToolContext], Awaitable[ToolResult]] = echo,
    timeout: float = 0,
) -> Tool:
    about = f"About {name}."
    return Tool(name, "read", EchoArgs, run, description=about, timeout=timeout, parallel=True)


def registry(*tools: Tool) -> ToolRegistry:
    return ToolRegistry(tools or (tool(),))


async def call(r: ToolRegistry, name: str, **args: JsonValue) -> ToolResult:
    return await r.call(ToolCall(tool=name, args=args), CONTEXT)


@pytest.mark.parametrize(
    "name", ["files/read", "files__read", "files.read", "file_ops.read_file", " files/read "]
)
async def test_a_tool_answers_to_its_canonical_name_its_wire_name_and_the_seeds_names(name: str) -> None:
    result = await call(registry(), name, path="a")
    assert result.ok, result.text


async def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    result = await call(registry(tool(), tool("files/write"), tool("shell/run")), "files/reed", path="a")
    assert not result.ok
    assert "no tool 'files__reed'" in result.text
    assert "The nearest are files__read" in result.text


@for_each(
    ("name", "ours"),
    [
        ("files/read", "files/read"), ("files__read", "files/read"), ("files.read", "files/read"),
        ("files_read", "files/read"), ("Read", "files/read"), ("read_file", "files/read"), ("Bash", "shell/run"),
        ("run_terminal_cmd", "shell/run"), ("apply_patch", "files/patch"), ("str_replace", "files/edit"),
        ("grep_search", "search/text"), ("list_dir", "files/list"), ("WebFetch", "web/fetch"), ("dance", None),
        ("readme", None), ("", None),
    ],
)  # fmt: skip
def test_every_spelling_of_a_name_is_taken_and_what_other_programs_call_such_a_tool(
    name: str, ours: str | None
) -> None:
    assert ToolRegistry(build_builtin_tools()).resolve(name) == ours
    assert registry(tool("mine/bash")).resolve("Bash") is None


def test_wire_names_are_short_plain_and_never_meet() -> None:
    names = [
        "files/read",
        "a__b/c",
        "a/b__c",
        "srv/" + "x" * 80,
        "srv/" + "x" * 80 + "y",
        "名/前",
        "s.t/u",
        "s_t/u",
    ]
    wires = [wire_name(n) for n in names]
    assert wires[0] == "files__read"
    assert len(set(wires)) == len(names)
    assert all(len(w) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in w) for w in wires)
    r = registry(*(tool(n) for n in names))
    assert [r.resolve(w) for w in wires] == names


async def test_arguments_are_cast_into_the_tools_model() -> None:
    result = await call(registry(), "files/read", path="a", start_line="7")
    assert '"start_line":7' in result.text


async def test_null_for_an_optional_argument_and_json_text_for_a_list_are_understood() -> None:
    result = await call(
        registry(), "files/read", path="a", limit=None, edits='[{"search": "x", "replace": "y"}]'
    )
    assert result.ok, result.text
    assert '"limit":5' in result.text
    assert '"search":"x"' in result.text


async def test_wrong_arguments_are_told_one_by_one_with_what_would_be_right() -> None:
    result = await call(registry(), "files/read", pth="a", start_line="seven", edits=[{"search": "x"}])
    assert not result.ok
    assert result.data == {"error": "ToolValidationError"}
    assert "path is missing" in result.text
    assert "pth is not known; did you mean path?" in result.text
    assert "start_line" in result.text
    assert '"seven"' in result.text
    assert "edits.0.replace is missing" in result.text
    assert '{"path": string, "start_line"?: integer' in result.text


@pytest.mark.parametrize("path", [None, ["a"], {"a": {"b": 1}}, float("nan"), 7])
async def test_a_path_of_another_type_is_a_validation_error(path: JsonValue) -> None:
    result = await call(registry(), "files/read", path=path)
    assert not result.ok
    assert "path" in result.text


async def test_a_huge_wrong_value_is_not_repeated_whole() -> None:
    result = await call(registry(), "files/read", path="a", start_line="x" * 10_000_000)
    assert not result.ok
    assert len(result.text) < 1000


@pytest.mark.parametrize(
    ("text", "why"), [('{"path": ', "Expecting"), ("[1]", "list"), ("[" * 100_000, "nested")]
)
async def test_malformed_arguments_are_told_and_not_run(text: str, why: str) -> None:
    result = await registry().call(ToolCall(tool="files/read", malformed=text), CONTEXT)
    assert not result.ok
    assert why in result.text
    assert len(result.text) < 1000


async def test_what_a_tool_raises_becomes_a_result_without_secrets() -> None:
    async def boom(args: EchoArgs, context: ToolContext) -> ToolResult:
        raise KeyError("sk-secret")

    r = ToolRegistry([tool(run=boom)], redact=lambda text: text.replace("sk-secret", "***"))
    result = await call(r, "files/read", path="a")
    assert (result.ok, result.text) == (False, "files__read failed: KeyError: '***'")


async def test_an_expected_failure_keeps_its_own_words() -> None:
    async def refuse(args: EchoArgs, context: ToolContext) -> ToolResult:
        raise ToolValidationError(
            Failure(kind="tool", message=Text("a is a folder."), hint=Text("Use files/list."))
        )

    result = await call(registry(tool(run=refuse)), "files/read", path="a")
    assert (result.ok, result.text) == (False, "a is a folder. Use files/list.")


async def test_a_tool_that_takes_too_long_is_stopped() -> None:
    async def hang(args: EchoArgs, context: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    result = await call(registry(tool(run=hang, timeout=0.01)), "files/read", path="a")
    assert not result.ok
    assert "0.01 s" in result.text


async def test_a_tools_own_timeout_error_is_not_taken_for_ours() -> None:
    async def own(args: EchoArgs, context: ToolContext) -> ToolResult:
        raise TimeoutError("the server is slow")

    result = await call(registry(tool(run=own, timeout=5)), "files/read", path="a")
    assert "the server is slow" in result.text


async def test_cancelling_a_call_is_not_swallowed() -> None:
    started = asyncio.Event()

    async def hang(args: EchoArgs, context: ToolContext) -> ToolResult:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(call(registry(tool(run=hang, timeout=60)), "files/read", path="a"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_long_output_is_cut_in_the_middle_with_a_note() -> None:
    async def much(args: EchoArgs, context: ToolContext) -> ToolResult:
        return ToolResult(ok=True, text="\n".join(f"line {i}" for i in range(100_000)))

    result = await call(registry(tool(run=much)), "files/read", path="a")
    assert len(result.text) < 31_000
    assert result.text.startswith("line 0\n")
    assert result.text.endswith("line 99999")
    assert "lines" in result.text
    assert "left out here. Ask for a smaller part" in result.text


def test_the_257th_tool_evicts_the_least_recently_used() -> None:
    """R1.38: 256 loaded tools are kept, the least recently used goes first."""
    r = registry(*(tool(f"n/t{i}") for i in range(257)))
    first, second = r.get("n/t0"), r.get("n/t1")
    for i in range(2, 256):
        r.get(f"n/t{i}")
    assert r.get("n/t0") is first
    r.get("n/t256")
    assert r.get("n/t0") is first
    assert r.get("n/t1") is not second


def test_schemas_have_no_titles_or_references_but_keep_an_argument_called_title() -> None:
    """R1.12: the registry holds what is known of each tool."""
    loaded = registry().get("files/read")
    assert loaded is not None
    assert "$ref" not in loaded.schema_json
    assert '"title": {"type": "string"}' in loaded.schema_json
    assert '"description": "what to replace"' in loaded.schema_json
    spec = registry().specs()[0]
    assert (spec.description, spec.effect, spec.parallel) == ("About files/read.", "read", True)
    assert "Title" not in str(spec.parameters)


def test_the_prompt_stub_names_every_schema() -> None:
    """R1.39: one line a tool, by the name that the model calls; together they are an object of JSON."""
    stub = registry(tool(), tool("shell/run")).get_prompt_stub()
    assert stub.startswith('"files__read": {"type":"object","description":"About files/read.","properties":{')
    schemas = json.loads(f"{{{stub}}}")
    assert list(schemas) == ["files__read", "shell__run"]
    assert all(each["required"] == ["path"] for each in schemas.values())


async def test_tools_come_and_go() -> None:
    r = registry()
    r.add([tool("mcp/one")])
    assert [s.name for s in r.specs()] == ["files/read", "mcp/one"]
    r.remove(["mcp/one", "mcp/none"])
    assert r.get("mcp__one") is None
    assert [s.name for s in r.specs()] == ["files/read"]


async def test_a_preview_is_made_from_checked_arguments() -> None:
    async def show(args: EchoArgs, context: ToolContext) -> Preview | ToolResult:
        return Preview(text=f"read {args.path}")

    shown = Tool(name="files/read", effect="read", args=EchoArgs, run=echo, preview=show)
    r = registry(shown, tool("files/list"))
    assert await r.preview(ToolCall(tool="files.read", args={"path": "a"}), CONTEXT) == Preview(text="read a")
    wrong = await r.preview(ToolCall(tool="files/read"), CONTEXT)
    assert isinstance(wrong, ToolResult)
    assert not wrong.ok
    assert await r.preview(ToolCall(tool="files/list", args={"path": "a"}), CONTEXT) is None
