"""A later action may use what an earlier one came to; where it cannot, nothing after it is run."""

from __future__ import annotations

import pytest

from daiku.core.decide import Refuse, Rules, RunTools, decide
from daiku.core.guard import Verdict
from daiku.core.refs import filled, refs
from daiku.core.state import State, fold
from daiku.domain.base import JsonObject
from daiku.domain.events import Event, MessageSaid, RunStarted, ToolCalled, ToolResponded
from daiku.domain.tools import ToolCall, ToolSpec

DATA: JsonObject = {"files": [{"path": "p"}], "n": 3}
READ = ToolSpec(name="files/read", description="", parameters={}, effect="read", parallel=True)
RULES = Rules(spec=lambda _: READ, verdict=lambda _call, _tainted: Verdict("allow", "", "edit"), compact_at=0)


def use(target: str, id_: str = "c2") -> ToolCall:
    return ToolCall(id=id_, tool="files/read", args={"path": {"$ref": target}})


@pytest.mark.parametrize(
    ("target", "value"),
    [("c1", "hello"), ("c1.text", "hello"), ("c1.data.files.0.path", "p"), ("c1.n", 3), ("c1.data.n", 3)],
)
def test_a_reference_becomes_the_value(target: str, value: object) -> None:
    call = ToolCall(id="c2", tool="x", args={"a": {"b": [{"$ref": target}]}, "c": 1})
    assert filled(call, "c1", "hello", DATA).args == {"a": {"b": [value]}, "c": 1}


@pytest.mark.parametrize("target", ["c9.text", "c1.data.files.7", "c1.data.nope", "c1.text.x"])
def test_a_reference_that_leads_nowhere_stays(target: str) -> None:
    assert filled(use(target), "c1", "hello", DATA) == use(target)


def test_references_of_json_schema_are_none() -> None:
    assert list(
        refs({"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "https://x/y"}, "c": {"$ref": "c1.text"}})
    ) == ["c1.text"]


def after(*events: Event, calls: tuple[ToolCall, ...]) -> State:
    return fold([RunStarted(prompt="go"), MessageSaid(role="assistant", text="", calls=calls), *events])


FIRST = ToolCall(id="c1", tool="files/read", args={"path": "a"})
RAN = (
    ToolCalled(id="c1", tool="files/read", args={}),
    ToolResponded(id="c1", tool="files/read", ok=True, result="b.txt"),
)
FAILED = (RAN[0], ToolResponded(id="c1", tool="files/read", ok=False, result="no"))


def test_the_dependent_call_waits_and_runs_with_the_value() -> None:
    calls = (FIRST, use("c1.text"))
    assert decide(after(calls=calls), RULES) == RunTools((FIRST,))
    command = decide(after(*RAN, calls=calls), RULES)
    assert isinstance(command, RunTools)
    assert command.calls[0].args == {"path": "b.txt"}


@pytest.mark.parametrize(("came", "target"), [(FAILED, "c1.text"), (RAN, "c1.data.nope")])
def test_without_the_value_it_is_not_run_and_nothing_after_it(came: tuple[Event, ...], target: str) -> None:
    last = ToolCall(id="c3", tool="files/read", args={"path": "z"})
    calls = (FIRST, use(target), last)
    command = decide(after(*came, calls=calls), RULES)
    assert isinstance(command, Refuse)
    assert f'"{target}" cannot be resolved' in command.why
    refused = ToolResponded(id="c2", tool="files/read", ok=False, outcome=command.outcome, result=command.why)
    then = decide(after(*came, refused, calls=calls), RULES)
    assert isinstance(then, Refuse)
    assert then.call == last
    assert "an earlier action" in then.why
