"""Arguments in the forms of other tools: carried out where the meaning is certain, left alone where it is not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.tools import ToolCall
from daiku.run.rules.calls.dialects import translate_dialect
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each

Json = dict[str, Any]
REGISTRY = ToolRegistry(build_builtin_tools())
EDITS = [{"search": "a", "replace": "b"}]

FORMS: list[tuple[str, Json, Json]] = [
    ("files/read", {"file_path": "a.py"}, {"path": "a.py"}),
    ("files/read", {"path": "a.py", "offset": 3, "limit": 2}, {"path": "a.py", "start_line": 3, "end_line": 4}),
    ("files/read", {"path": "a.py", "start_line": "2", "end_line": "5"}, {"path": "a.py", "start_line": 2, "end_line": 5}),
    ("files/read", {"path": "a.py", "view_range": [1, 3]}, {"path": "a.py", "start_line": 1, "end_line": 3}),
    ("files/read", {"target_file": "a.py", "start_line_one_indexed": 1, "end_line_one_indexed_inclusive": 3, "should_read_entire_file": False}, {"path": "a.py", "start_line": 1, "end_line": 3}),
    ("files/read", {"target_file": "a.py", "should_read_entire_file": True}, {"path": "a.py"}),
    ("files/edit", {"path": "a", "old_string": "a", "new_string": "b"}, {"path": "a", "edits": EDITS}),
    ("files/edit", {"path": "a", "old_str": "a", "new_str": "b"}, {"path": "a", "edits": EDITS}),
    ("files/edit", {"path": "a", "search": "a", "replace": "b"}, {"path": "a", "edits": EDITS}),
    ("files/edit", {"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]}, {"path": "a", "edits": EDITS}),
    ("files/edit", {"path": "a", "edits": '[{"search": "a", "replace": "b"}]'}, {"path": "a", "edits": EDITS}),
    ("files/edit", {"path": "a", "edits": {"search": "a", "replace": "b"}}, {"path": "a", "edits": EDITS}),
    ("files/write", {"file_path": "a", "content": "x"}, {"path": "a", "content": "x"}),
    ("files/write", {"path": "a", "file_text": "x"}, {"path": "a", "content": "x"}),
    ("files/patch", {"input": "*** Begin Patch"}, {"patch": "*** Begin Patch"}),
    ("search/text", {"query": "x"}, {"pattern": "x"}),
    ("search/text", {"pattern": "x", "include": "*.py"}, {"pattern": "x", "glob": "*.py"}),
    ("search/text", {"pattern": "x", "-n": True, "output_mode": "content"}, {"pattern": "x", "mode": "content"}),
    ("search/text", {"pattern": "x", "output_mode": "files_with_matches", "head_limit": 9}, {"pattern": "x", "mode": "files", "limit": 9}),
    ("search/text", {"pattern": "x", "-A": 2, "-B": 1, "-i": True}, {"pattern": "x", "context": 2, "ignore_case": True}),
    ("search/text", {"pattern": "x", "-C": 3, "output_mode": "count", "head_limit": 0}, {"pattern": "x", "context": 3, "mode": "count"}),
    ("search/text", {"pattern": "x", "before": 3, "maxResults": 5}, {"pattern": "x", "context": 3, "limit": 5}),
    ("search/text", {"query": "x", "isRegexp": False}, {"pattern": "x", "literal": True}),
    ("search/text", {"pattern": "class A|def b"}, {"pattern": "class A|def b"}),
    ("files/list", {"dir_path": "src"}, {"path": "src"}),
    ("files/list", {"pattern": "*.py"}, {"glob": "*.py"}),
    ("shell/run", {"command": "ls", "description": "Look"}, {"command": "ls"}),
    ("shell/run", {"cmd": "ls"}, {"command": "ls"}),
    ("shell/run", {"command": ["bash", "-lc", "ls | wc -l"]}, {"command": "ls | wc -l"}),
    ("shell/run", {"command": "ls", "timeout": 120000}, {"command": "ls", "timeout": 120.0}),
    ("shell/run", {"command": "ls", "timeout_ms": 5000}, {"command": "ls", "timeout": 5.0}),
    ("shell/run", {"command": "ls", "workdir": "my src"}, {"command": "cd 'my src' && ls"}),
    ("shell/run", {"command": "ls", "is_background": True}, {"command": "ls", "background": True}),
    ("shell/run", {"command": "ls", "background": "false"}, {"command": "ls", "background": False}),
    ("files/delete", {"path": "a", "explanation": "It is old."}, {"path": "a"}),
]  # fmt: skip

UNCERTAIN: list[tuple[str, Json]] = [
    ("files/read", {"path": "a.py", "file_path": "b.py"}),
    ("files/read", {"paths": ["a.py", "b.py"]}),
    ("search/text", {"pattern": "x", "-c": True}),
    ("files/read", {"path": "a.py", "view_range": [5, 2]}),
    ("files/read", {"path": "a.py", "offset": -3, "limit": 2}),
    ("files/edit", {"path": "a", "old_string": "a"}),
    ("files/edit", {"path": "a", "old_string": "a", "new_string": "b", "expected_replacements": 3}),
    ("files/edit", {"path": "a", "old_string": "a", "old_str": "c", "new_string": "b"}),
    ("files/edit", {"path": "a", "edits": [{"search": "a", "replace": "b"}, "c"]}),
    ("files/write", {"path": "a", "content": "x", "text": "y"}),
    ("files/write", {"path": "a", "content": "x", "append": True}),
    ("search/text", {"pattern": "x", "output_mode": "content", "mode": "count"}),
    ("search/text", {"query": "x", "search_term": "y"}),
    ("shell/run", {"cmd": "ls", "script": "rm x"}),
    ("shell/run", {"command": ["bash", "run.sh", "-c", "x"]}),
    ("shell/run", {"command": ["sh", "-x", "ls"]}),
    ("shell/run", {"command": "ls", "timeout": 99_000_000_000}),
    ("shell/run", {"command": "ls", "with_escalated_permissions": True}),
]


@for_each(("tool", "given_args", "wanted"), FORMS)
def test_a_form_of_another_tool_is_carried_out_as_it_is_meant(
    tool: str, given_args: Json, wanted: Json
) -> None:
    read = REGISTRY.read(ToolCall(id="c", tool=tool, args=given_args))
    assert read.args == wanted
    assert isinstance(REGISTRY.parse(read), tuple)
    again = REGISTRY.read(read)
    assert (again.args, again.notes) == (read.args, read.notes)


@for_each(("tool", "args"), UNCERTAIN)
def test_what_could_mean_two_things_is_refused_with_the_right_shape(tool: str, args: Json) -> None:
    call = ToolCall(id="c", tool=tool, args=args)
    assert REGISTRY.read(call).args == args
    refused = REGISTRY.parse(REGISTRY.read(call))
    assert not isinstance(refused, tuple)
    assert "Right: {" in refused.text


@for_each("value", ["false", "False", "0", 0, "no", "off", "f", "n"])
def test_whoever_judges_a_command_sees_that_it_wants_to_leave_the_sandbox(value: object) -> None:
    read = REGISTRY.read(ToolCall(id="c", tool="shell/run", args={"command": "ls", "sandbox": value}))  # pyright: ignore[reportArgumentType]  # JSON
    assert read.args["sandbox"] is False


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted(
    {key for _, given_args, _ in FORMS for key in given_args}
    | {"sandbox", "network", "cwd", "recursive", "-i", "regex"}
)


@given(
    st.sampled_from([spec.name for spec in REGISTRY.specs()]),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5),
)
def test_what_is_judged_is_what_the_tool_gets(tool: str, args: Json) -> None:
    read = REGISTRY.read(ToolCall(id="c", tool=tool, args=args))
    parsed = REGISTRY.parse(read)
    if isinstance(parsed, tuple):
        assert parsed[1].model_dump(mode="json", exclude_unset=True) == read.args
        assert REGISTRY.read(read).args == read.args
    else:
        assert read.args == args


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5))
def test_reading_arguments_twice_changes_nothing_more(args: Json) -> None:
    for tool in ("files/read", "files/edit", "files/write", "files/list", "search/text", "shell/run"):
        once = translate_dialect(tool, args, frozenset())
        assert translate_dialect(tool, once.args, frozenset()).args == once.args
