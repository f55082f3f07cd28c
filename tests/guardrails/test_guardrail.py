"""The Guardrail alone: schemas, patterns that may not stall, functions; and what wrong arguments say."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from daiku.guard.guardrails.guardrail import Guardrail
from daiku.guard.guardrails.matching import is_cheap
from daiku.guard.rules.guardrails.fingerprints import searched_forms
from tests.cases import for_each

EXPLODING = r"^(a+)+$"
STALLED = 0.25
"""Seconds between two turns of the loop that would be felt."""


class Order(BaseModel):
    item: str
    count: Annotated[int, Field(ge=1)]


async def test_an_input_is_judged_by_its_schema_and_by_nothing_of_the_output() -> None:
    """R1.45, R1.46: text is checked as it stands, and as the JSON that it holds."""
    guard = Guardrail(input_schema=Order, output_schema=int)
    assert await guard.validate_input('{"item": "nail", "count": 3}') == {"action": "pass", "reason": ""}
    assert (await guard.validate_input(Order(item="nail", count=3)))["action"] == "pass"
    wrong = await guard.validate_input('{"item": "nail", "count": 0}')
    assert wrong["action"] == "block"
    assert "count" in wrong["reason"]
    assert (await guard.validate_input("nails, please"))["action"] == "block"


async def test_an_output_is_judged_by_its_schema() -> None:
    """R1.47"""
    guard = Guardrail(output_schema=Order)
    assert (await guard.validate_output('```json\n{"item": "nail", "count": 3}\n```'))["action"] == "pass"
    assert (await guard.validate_output('{"item": "nail"}'))["action"] == "block"
    assert (await guard.validate_input("anything"))["action"] == "pass"


async def test_a_json_schema_is_a_schema_too() -> None:
    guard = Guardrail(
        output_schema={"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    )
    assert (await guard.validate_output('{"a": 1}'))["action"] == "pass"
    assert (await guard.validate_output('{"a": "x"}'))["action"] == "block"
    assert (await guard.validate_output("{}"))["action"] == "block"
    assert (await guard.validate_output("no json"))["action"] == "block"


async def test_a_reason_holds_no_value_of_what_was_blocked() -> None:
    answer = await Guardrail(input_schema=Order).validate_input('{"item": "nail", "count": "hunter2hunter2"}')
    assert "hunter2" not in answer["reason"]


@pytest.mark.parametrize("said", [
    "a\u200bttack", "ａｔｔａｃｋ", "аttаck", "at\u00adtack", "àttáck", "\u202eattack", "at\ufe0ftack", "αττack",
    "at\U000e0041tack",
])  # fmt: skip
async def test_a_pattern_is_found_behind_hidden_characters_and_letters_that_look_alike(said: str) -> None:
    guard = Guardrail(regex_blocks=["attack"])
    assert (await guard.validate_input(f"an {said} begins"))["action"] == "block"


async def test_a_pattern_in_another_script_is_found_as_it_stands() -> None:
    guard = Guardrail(regex_blocks=["пароль", "か\\d", "秘密"])
    for said in ("мой пароль", "か1", "これは秘密です"):
        assert (await guard.validate_input(said))["action"] == "block"
    for said in ("моя дача", "が1", "これは公開です"):
        assert (await guard.validate_input(said))["action"] == "pass"


async def test_names_and_values_of_data_are_searched() -> None:
    guard = Guardrail(regex_blocks=["secret"])
    for data in ({"secret": 1}, {"a": ["b", {"c": "secret"}]}, ["secret"], Order(item="secret", count=1)):
        assert (await guard.validate_output(data))["action"] == "block"
    assert (await guard.validate_output({"a": [1, None, True]}))["action"] == "pass"


async def _while_watched(judged: Any) -> tuple[Any, float]:
    """What comes of it, and the longest time that the loop stood still meanwhile."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - before)

    watching = asyncio.create_task(watch())
    try:
        return await judged, longest
    finally:
        watching.cancel()


async def test_a_pattern_that_explodes_blocks_in_time_and_stalls_nothing() -> None:
    """It neither holds up other sessions nor lets the text through."""
    guard = Guardrail(regex_blocks=[EXPLODING])
    began = time.perf_counter()
    answer, longest = await _while_watched(guard.validate_input("a" * 40 + "!"))
    assert answer["action"] == "block"
    assert EXPLODING in answer["reason"]
    assert time.perf_counter() - began < 5
    assert longest < STALLED
    assert (await guard.validate_input("b"))["action"] == "pass", "the next text is judged as ever"


async def test_many_texts_at_once_are_judged_while_one_pattern_explodes() -> None:
    """Others wait for a process, not for ever, and nothing else waits for them."""
    plain, bad = Guardrail(regex_blocks=[r"ba+d"]), Guardrail(regex_blocks=[EXPLODING])
    texts = ["good", "baad"] * 30
    slow = asyncio.create_task(bad.validate_input("a" * 40 + "!"))
    answers = await asyncio.gather(*map(plain.validate_input, texts))
    assert [answer["action"] for answer in answers] == ["pass", "block"] * 30
    assert (await slow)["action"] == "block"


async def test_ten_megabytes_are_judged_without_a_stall() -> None:
    guard = Guardrail(regex_blocks=["needle", r"n\d+eedle$"])
    for hay in ("hay " * 2_500_000, "藁 é " * 2_500_000):
        answer, longest = await _while_watched(guard.validate_input(hay))
        assert answer["action"] == "pass"
        assert longest < STALLED
        assert (await guard.validate_input(hay + "needle"))["action"] == "block"


@for_each("pattern", ["secret", "pass(?:word)?s?", "[a-z]x|y", r"\bkey\b", "秘密"])
def test_patterns_without_repetition_are_cheap(pattern: str) -> None:
    assert is_cheap(pattern)


@for_each(
    "pattern", [EXPLODING, "a*b", "(a)\\1", "(?=a)b", "a{2,}", "a?" * 20, "|".join("abcdefgh"), "a" * 600]
)
def test_patterns_that_repeat_or_choose_much_are_matched_outside(pattern: str) -> None:
    assert not is_cheap(pattern)


async def test_functions_are_asked_in_turn_and_the_first_block_counts() -> None:
    """R1.45: sync and async; the data is what they are given."""
    seen: list[object] = []

    async def notes(data: object) -> None:
        seen.append(data)

    def blocks(data: str) -> dict[str, str]:
        return {"action": "block", "reason": f"no {data}"}

    assert await Guardrail(custom_funcs=[notes, blocks, notes]).validate_input("x") == {
        "action": "block",
        "reason": "no x",
    }
    assert seen == ["x"]


async def test_a_block_overrides_a_warning_and_warnings_are_told_together() -> None:
    """R1.50, R1.51"""

    def warn(data: str) -> dict[str, str]:
        return {"action": "warn", "reason": "Careful."}

    assert (await Guardrail(custom_funcs=[warn, warn]).validate_output("x"))["reason"] == "Careful. Careful."
    assert (await Guardrail(custom_funcs=[warn, lambda _: {"action": "block"}]).validate_output("x"))[
        "action"
    ] == "block"


def _raises(_: object) -> None:
    raise RuntimeError("secret detail")


def _stops(_: object) -> None:
    raise StopIteration


@pytest.mark.parametrize(
    "function", [_raises, _stops, lambda _: "block", lambda _: {"action": "blocked"}, lambda _: True]
)
async def test_a_function_that_fails_or_answers_something_else_blocks(function: Callable[..., Any]) -> None:
    """What cannot be judged does not pass."""
    async with asyncio.timeout(5):
        answer = await Guardrail(custom_funcs=[function]).validate_input("x")
    assert answer["action"] == "block"
    assert "secret detail" not in answer["reason"]


@pytest.mark.parametrize(
    ("wrong", "kind", "name"),
    [
        ({"regex_blocks": ["("]}, ValueError, "regex_blocks[0]"),
        ({"regex_blocks": "abc"}, TypeError, "regex_blocks"),
        ({"regex_blocks": [3]}, TypeError, "regex_blocks[0]"),
        ({"custom_funcs": ["x"]}, TypeError, "custom_funcs[0]"),
        ({"custom_funcs": print}, TypeError, "custom_funcs"),
        ({"input_schema": 5}, TypeError, "input_schema"),
        ({"output_schema": object()}, TypeError, "output_schema"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], kind: type[Exception], name: str) -> None:
    with pytest.raises(kind, match=re.escape(name)):
        Guardrail(**wrong)


def test_all_arguments_are_named() -> None:
    """R1.45: keyword only."""
    with pytest.raises(TypeError):
        Guardrail(Order)  # pyright: ignore[reportCallIssue]


def test_ascii_text_has_one_form() -> None:
    assert searched_forms("plain") == ("plain",)
    assert len(searched_forms("プレーン")) == 1
