"""A later action may use what an earlier one came to; where it cannot, nothing after it is run."""

from __future__ import annotations

from daiku.domain.base import JsonObject
from daiku.domain.events import Event, MessageEvent, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.guard.rules.policy import Verdict
from daiku.run.rules.calls.refs import fill_refs, find_refs, resolve_positions
from daiku.run.rules.decide import Refuse, Rules, RunTools, decide
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.texts.text import Text
from tests.cases import for_each

DATA: JsonObject = {"files": [{"path": "p"}], "n": 3}
READ = ToolSpec(name="files/read", description="", parameters={}, effect="read", parallel=True)
RULES = Rules(
    spec=lambda _: READ, verdict=lambda _call, _tainted: Verdict("allow", Text(""), "edit"), compact_at=0
)


def use(target: str, id_: str = "c2") -> ToolCall:
    return ToolCall(id=id_, tool="files/read", args={"path": {"$ref": target}})


@for_each(
    ("target", "value"),
    [("c1", "hello"), ("c1.text", "hello"), ("c1.data.files.0.path", "p"), ("c1.n", 3), ("c1.data.n", 3)],
)
def test_a_reference_becomes_the_value(target: str, value: object) -> None:
    call = ToolCall(id="c2", tool="x", args={"a": {"b": [{"$ref": target}]}, "c": 1})
    assert fill_refs(call, "c1", "hello", DATA).args == {"a": {"b": [value]}, "c": 1}


@for_each("target", ["c9.text", "c1.data.files.7", "c1.data.nope", "c1.text.x"])
def test_a_reference_that_leads_nowhere_stays(target: str) -> None:
    assert fill_refs(use(target), "c1", "hello", DATA) == use(target)


@for_each(
    ("text", "data", "plain"),
    [
        ("Exit code 0 after 0.1 s.\nhello", {"exitCode": 0, "output": "hello\n"}, "hello\n"),
        ("1 | def add", {"plain": "def add\n"}, "def add\n"),
        ("two lines", {"n": 2}, "two lines"),
        ("nothing else", None, "nothing else"),
    ],
)
@for_each("path", ["", ".text", ".result", ".output", ".stdout"])
def test_the_text_of_a_result_is_what_was_found_without_what_is_put_around_it(
    text: str, data: JsonObject | None, plain: str, path: str
) -> None:
    assert fill_refs(use(f"c1{path}"), "c1", text, data).args == {"path": plain}


def test_a_call_is_named_by_its_number_where_no_model_knows_its_id() -> None:
    first, second = ToolCall(id="x1", tool="a"), ToolCall(id="x2", tool="b", args={"p": {"$ref": "1.text"}})
    third = ToolCall(
        id="x3",
        tool="c",
        args={"p": [{"$ref": "2"}, {"$ref": "x1.data.n"}, {"$ref": "9.text"}, {"$ref": "3.text"}]},
    )
    made = resolve_positions((first, second, third))
    assert made[1].args == {"p": {"$ref": "x1.text"}}
    assert made[2].args == {
        "p": [{"$ref": "x2"}, {"$ref": "x1.data.n"}, {"$ref": "9.text"}, {"$ref": "3.text"}]
    }


def test_a_list_that_is_an_argument_keeps_its_own_names() -> None:
    inner: JsonObject = {
        "actions": [
            {"id": "t", "operation": "x"},
            {"operation": "y", "args": {"p": [{"$ref": "t.text"}, {"$ref": "1.text"}]}},
        ]
    }
    bare: JsonObject = {
        "actions": [{"operation": "x"}, {"operation": "y", "args": {"p": {"$ref": "1.text"}}}]
    }
    unnamed = ToolCall(id="x3", tool="task/generate_list", args=bare)
    calls = resolve_positions(
        (ToolCall(id="x1", tool="a"), ToolCall(id="x2", tool="task/generate_list", args=inner), unnamed)
    )
    assert calls[2] == unnamed
    assert calls[1].args == inner
    assert decide(after(*ran("x1"), calls=calls[:2]), RULES) == RunTools((calls[1],))


def test_references_of_json_schema_are_none() -> None:
    assert list(
        find_refs({"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "https://x/y"}, "c": {"$ref": "c1.text"}})
    ) == ["c1.text"]


def after(*events: Event, calls: tuple[ToolCall, ...]) -> State:
    return fold(
        [RunStarted(prompt="go"), MessageEvent(role="assistant", text=Text(""), calls=calls), *events]
    )


FIRST = ToolCall(id="c1", tool="files/read", args={"path": "a"})
RAN = (
    ToolCallEvent(id="c1", tool="files/read", args={}),
    ToolResponse(id="c1", tool="files/read", ok=True, result="b.txt"),
)


def ran(id_: str) -> tuple[Event, ...]:
    return (
        ToolCallEvent(id=id_, tool="files/read", args={}),
        ToolResponse(id=id_, tool="files/read", ok=True, result="b.txt"),
    )


FAILED = (RAN[0], ToolResponse(id="c1", tool="files/read", ok=False, result="no"))


def test_the_dependent_call_waits_and_runs_with_the_value() -> None:
    calls = (FIRST, use("c1.text"))
    assert decide(after(calls=calls), RULES) == RunTools((FIRST,))
    command = decide(after(*RAN, calls=calls), RULES)
    assert isinstance(command, RunTools)
    assert command.calls[0].args == {"path": "b.txt"}


@for_each(
    ("came", "target"),
    [
        (FAILED, "c1.text"),
        (RAN, "c1.data.nope"),
        (RAN, "nobody.text"),
        (RAN, "9"),
        (RAN, "c3.text"),
        (RAN, "c2.text"),
    ],
)
def test_without_the_value_it_is_not_run_and_nothing_after_it(came: tuple[Event, ...], target: str) -> None:
    last = ToolCall(id="c3", tool="files/read", args={"path": "z"})
    calls = (FIRST, use(target), last)
    command = decide(after(*came, calls=calls), RULES)
    assert isinstance(command, Refuse)
    assert f'"{target}" does not match any result' in command.why
    refused = ToolResponse(id="c2", tool="files/read", ok=False, outcome=command.outcome, result=command.why)
    then = decide(after(*came, refused, calls=calls), RULES)
    assert isinstance(then, Refuse)
    assert then.call == last
    assert "an earlier action" in then.why
