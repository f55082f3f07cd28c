"""Typed answers: asked for by a tool or as JSON, checked, sent back with what is wrong, and handed over as a value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel  # noqa: TID251  # people's own types are of every kind
from typing_extensions import TypedDict

from daiku import Agent, Runner
from daiku.testing import FakeLLM
from tests.cases import for_each


class City(BaseModel):
    """A place."""

    name: str
    people: int = Field(ge=0)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int


class Row(TypedDict):
    key: str


class Numbers(RootModel[list[int]]):
    pass


ROME = {"name": "Rome", "people": 3}


def gives(**args: Any) -> dict[str, Any]:
    return {"tool": "result__give", "args": args}


async def test_a_typed_answer_is_a_checked_value() -> None:
    """R1.10: the answer comes by a tool whose schema is the type's."""
    llm = FakeLLM(gives(**ROME))
    result = await Agent("a", "Name a city.", output=City, model=llm).run("One.")
    assert result.output == City(name="Rome", people=3)
    assert (result.status, len(llm.requests)) == ("completed", 1)
    (spec,) = llm.requests[0].tools
    assert spec.name == "result/give"
    assert '"people": {"type": "integer"}' in json.dumps(spec.parameters)
    assert "result__give" in llm.requests[0].system


async def test_an_answer_that_does_not_fit_is_sent_back_with_what_is_wrong() -> None:
    llm = FakeLLM(gives(name="Rome", people=-3), gives(name="Rome"), gives(**ROME))
    result = await Agent("a", "Name a city.", output=City, model=llm).run("One.")
    assert result.output == City(name="Rome", people=3)
    told = [request.messages[-1].text for request in llm.requests[1:]]
    assert "people" in told[0]
    assert "greater than or equal to 0" in told[0]
    assert "people" in told[1]
    assert "equired" in told[1]


async def test_an_answer_that_never_fits_fails_the_run() -> None:
    result = await Agent("a", "x", output=City, model=FakeLLM(*["Rome is nice."] * 9)).run("One.")
    assert (result.status, result.output) == ("failed", None)
    assert result.error is not None
    assert result.error.kind == "format"


async def test_json_in_words_is_an_answer_too() -> None:
    llm = FakeLLM('Here it is:\n```json\n{"name": "Rome", "people": 3}\n```')
    result = await Agent("a", "x", output=City, model=llm).run("One.")
    assert result.output == City(name="Rome", people=3)


async def test_a_model_without_tools_is_told_the_schema() -> None:
    llm = FakeLLM('{"name": "Rome", "people": 3}')
    llm.tool_protocol = "action_list"
    result = await Agent("a", "x", output=City, model=llm).run("One.")
    assert result.output == City(name="Rome", people=3)
    assert '"people"' in llm.requests[0].system


@for_each(
    ("type_", "given", "value"),
    [
        (int, 7, 7),
        (list[int], [1, 2], [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Literal["yes", "no"], "no", "no"),
        (Colour, "blue", Colour.BLUE),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Row, {"key": "k"}, {"key": "k"}),
        (City | Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Numbers, [1], Numbers([1])),
        (bool, False, False),
        (list[City], [ROME], [City(name="Rome", people=3)]),
        (int | None, None, None),
    ],
)
def test_any_type_that_pydantic_can_check_is_an_output(type_: Any, given: Any, value: object) -> None:
    """C1.2: by pydantic 2, whose validators know them all."""
    result = Agent("a", "x", output=type_, model=FakeLLM(gives(result=given))).run_sync("One.")
    assert (result.status, result.output) == ("completed", value)


async def test_other_tools_are_called_before_the_answer() -> None:
    def people(city: str) -> int:
        """Count them."""
        return 3

    both = [{"tool": "people", "args": {"city": "Rome"}}, gives(**ROME)]
    llm = FakeLLM(both, gives(**ROME))
    result = await Agent("a", "x", tools=[people], output=City, model=llm).run("One.")
    assert result.output == City(name="Rome", people=3)
    assert llm.requests[1].messages[-1].text == "3"


async def test_silence_is_no_typed_answer() -> None:
    result = await Agent("a", "x", output=City, model=FakeLLM(*[""] * 9)).run("One.")
    assert result.status == "failed"
    assert result.output is None


async def test_an_answer_of_a_nested_agent_is_typed_json_to_its_caller() -> None:
    inner = Agent("counter", "Count.", output=City)
    llm = FakeLLM(
        {"tool": "agent__handoff", "args": {"agent": "counter", "request": "x"}}, gives(**ROME), "3 people"
    )
    async with Runner(model=llm) as runner:
        await runner.run(Agent("chief", "Ask.", handoffs=[inner]), "x")
    assert llm.requests[2].messages[-1].text == '{"name": "Rome", "people": 3}'


def test_what_pydantic_cannot_check_is_refused() -> None:
    class Odd:
        pass

    with pytest.raises(TypeError, match="`output` is a type that pydantic can check"):
        Agent("a", "x", output=Odd)
    with pytest.raises(TypeError, match="`output`"):
        Agent("a", "x", output=City(name="x", people=1))
