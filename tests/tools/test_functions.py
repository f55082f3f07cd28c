"""People's functions as tools: their schema, their arguments, where they run, what becomes of their results."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field, JsonValue

from daiku.domain.events import Event, ToolOutput
from daiku.domain.tools import ToolCall, ToolResult
from daiku.tools.functions import as_tool, as_tools, tool
from daiku.tools.registry import ToolRegistry
from daiku.tools.threads import Threads
from daiku.tools.tool import Tool, ToolContext
from tests.cases import for_each


class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Place(BaseModel):
    city: str = Field(description="its name")
    country: str = "JP"


@dataclass
class Span:
    first: date
    days: int = 1


def context(**parts: Any) -> ToolContext:
    """A ToolContext of which only these parts are looked at."""
    nothing = SimpleNamespace()
    whole = ToolContext(
        session="s",
        run="r",
        call_id="c",
        workspace=cast(Any, nothing),
        checkpoints=cast(Any, nothing),
        config=cast(Any, nothing),
        emit=lambda _event: None,
    )
    return replace(whole, **parts)


async def call(made: Tool, handed: ToolContext | None = None, /, **args: JsonValue) -> ToolResult:
    """What the registry answers to a call of this tool."""
    registry = ToolRegistry((made,))
    return await registry.call(registry.read(ToolCall(tool=made.name, args=args)), handed or context())


def schema(made: Tool) -> dict[str, Any]:
    spec = ToolRegistry((made,)).spec(made.name)
    assert spec is not None
    return spec.parameters


@tool
def weather(
    place: Place,
    unit: Unit = Unit.METRIC,
    days: Annotated[int, Field(ge=1, le=7)] = 3,
    detail: Literal["low", "high"] = "low",
    span: Span | None = None,
    tags: list[str] | None = None,
    near: Annotated[float, "kilometres around it"] = 1.5,
) -> str:
    """Tell the weather.

    Args:
        place: Where.
        days: How many days.
    """
    return f"{type(place).__name__} {place.city} {unit.name} {days} {detail} {span!r} {tags} {near}"


def test_the_schema_of_a_function_comes_from_its_hints_and_its_docstring() -> None:
    """R1.86: the schema that a model is sent says what the function takes."""
    spec = ToolRegistry((weather,)).spec("weather")
    assert spec is not None
    assert spec.description == "Tell the weather."
    assert spec.parameters == {
        "type": "object",
        "required": ["place"],
        "properties": {
            "place": {
                "type": "object",
                "description": "Where.",
                "required": ["city"],
                "properties": {
                    "city": {"type": "string", "description": "its name"},
                    "country": {"type": "string"},
                },
            },
            "unit": {"type": "string", "enum": ["metric", "imperial"]},
            "days": {"type": "integer", "description": "How many days."},
            "detail": {"type": "string", "enum": ["low", "high"]},
            "span": {
                "type": "object",
                "required": ["first"],
                "properties": {"first": {"type": "string", "format": "date"}, "days": {"type": "integer"}},
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "near": {"type": "number", "description": "kilometres around it"},
        },
    }


async def test_arguments_are_cast_into_the_types_of_the_hints() -> None:
    """R1.37: a function gets values of its hints' types, not JSON."""
    result = await call(
        weather,
        place={"city": "Kyoto"},
        unit="imperial",
        days="2",
        span={"first": "2026-11-23"},
        tags='["a"]',
    )
    assert result.text == (
        "Place Kyoto IMPERIAL 2 low Span(first=datetime.date(2026, 11, 23), days=1) ['a'] 1.5"
    )


async def test_what_the_model_leaves_out_or_gives_as_null_is_the_functions_own_default() -> None:
    standard = object()

    @tool
    def count(of: list[str] = standard) -> str:  # type: ignore[assignment]  # a default of another type is people's own affair
        return "own" if of is standard else "given"

    assert (await call(count)).text == "own"
    assert (await call(count, of=None)).text == "own"
    assert (await call(count, of=[])).text == "given"


async def test_wrong_arguments_fail_the_call_and_name_the_argument() -> None:
    """R1.83: the model is told which argument is wrong, and programs by a value."""
    result = await call(weather, place={"city": "Kyoto"}, days=9, detial="high")
    assert not result.ok
    assert result.data == {"error": "ToolValidationError"}
    assert "days: input should be less than or equal to 7 (given: 9)" in result.text
    assert "detial is not known; did you mean detail?" in result.text


def test_a_tool_is_frozen() -> None:
    """R1.36: a tool does not change once it is made."""
    with pytest.raises(AttributeError):
        weather.name = "other"  # pyright: ignore[reportAttributeAccessIssue]  # that is the point


def test_a_tool_has_what_the_decorator_says() -> None:
    @tool(name="shop/buy", effect="network", parallel=True, timeout=3)
    async def buy(item: str) -> str:
        """Buy it."""
        return item

    assert (buy.name, buy.effect, buy.parallel, buy.timeout) == ("shop/buy", "network", True, 3)
    assert (weather.effect, weather.parallel, weather.timeout) == ("none", False, 600)


def test_a_plain_function_is_a_tool_and_a_name_stays_a_name() -> None:
    """R1.19: functions among an agent's tools are wrapped."""

    def add(a: int, b: int) -> int:
        return a + b

    made = as_tools((add, weather, "files/*"))
    assert isinstance(made[0], Tool)
    assert made[0].name == "add"
    assert made[1:] == (weather, "files/*")


async def test_a_function_is_handed_the_context_which_the_model_is_not_told_of() -> None:
    """R1.20: what an agent was given for its tools reaches them."""

    @tool
    def read(ctx: ToolContext, key: str) -> str:
        ctx.emit(ToolOutput(id="c", text="looking"))
        return str(ctx.extra_cfg[key])

    told: list[Event] = []
    loop = threading.get_ident()
    handed = context(extra_cfg={"db": 7}, emit=lambda event: told.append((event, threading.get_ident())))  # type: ignore[arg-type]
    assert list(schema(read)["properties"]) == ["key"]
    assert (await call(read, handed, key="db")).text == "7"
    await asyncio.sleep(0)
    assert [(each.text, thread) for each, thread in cast("list[Any]", told)] == [("looking", loop)]


async def test_a_synchronous_function_runs_in_a_thread_with_the_callers_context() -> None:
    """R1.74: such a function never runs on the event loop."""
    variable = contextvars.ContextVar("variable", default="")
    variable.set("seen")

    @tool
    def where() -> str:
        return f"{threading.get_ident() != main} {variable.get()}"

    main = threading.get_ident()
    assert (await call(where)).text == "True seen"


async def test_half_a_second_of_computing_in_a_tool_does_not_hold_up_the_loop() -> None:
    """R1.74: others go on while a tool computes, also in pure Python, which shares the interpreter's lock."""

    @tool
    def compute() -> int:
        until, turns = time.monotonic() + 0.5, 0
        while time.monotonic() < until:
            turns += 1
        return turns

    gaps: list[float] = []
    working = asyncio.ensure_future(call(compute))
    last = time.monotonic()
    while not working.done():
        await asyncio.sleep(0.001)
        gaps.append(time.monotonic() - last)
        last = time.monotonic()
    assert (await working).ok
    assert len(gaps) > 15
    assert sorted(gaps)[len(gaps) * 9 // 10] < 0.1


def test_threads_are_bounded_and_those_that_never_end_are_let_go() -> None:
    threads = Threads(most=2)
    end = threading.Event()
    running: list[int] = []

    def busy() -> int:
        running.append(1)
        end.wait()
        return 1

    async def use() -> list[int]:
        stuck = [asyncio.ensure_future(threads.run(busy)) for _ in range(3)]
        while len(running) < 2:
            await asyncio.sleep(0.001)
        stuck[2].cancel()
        stuck[0].cancel()
        await asyncio.wait(stuck[::2])
        assert await asyncio.wait_for(threads.run(lambda: 7), 5) == 7
        end.set()
        assert await stuck[1] == 1
        return running

    assert asyncio.run(use()) == [1, 1]
    assert asyncio.run(threads.run(lambda: 8)) == 8


# -- results ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ("plain", "plain", None),
        (None, "done", None),
        ("half \ud800", "half ?", None),
        ({"city": "京都"}, '{"city":"京都"}', {"city": "京都"}),
        ([1, 2], "[1,2]", {"result": [1, 2]}),
        (7, "7", {"result": 7}),
        (float("inf"), '"Infinity"', {"result": "Infinity"}),
        (Place(city="Kyoto"), '{"city":"Kyoto","country":"JP"}', {"city": "Kyoto", "country": "JP"}),
        (Span(date(2026, 1, 2)), '{"first":"2026-01-02","days":1}', {"first": "2026-01-02", "days": 1}),
        (Unit.METRIC, '"metric"', {"result": "metric"}),
    ],
)
async def test_a_result_is_text_or_anything_that_can_be_json(value: object, text: str, data: object) -> None:
    """R1.84: the schema of what a tool returns: text for the model, and the same as data for programs."""

    @tool
    def give() -> object:
        return value

    @tool
    async def give_later() -> object:
        return value

    for made in (give, give_later):
        assert await call(made) == ToolResult(ok=True, text=text, data=cast(Any, data))


def _stream() -> Iterator[int]:
    yield 1


async def _later() -> int:
    return 1


async def _async_stream() -> AsyncIterator[int]:
    yield 1


def _round() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"\xff", "give returned bytes, and a model reads text: decode them"),
        (lambda: bytearray(b"x"), "give returned bytearray"),
        (
            lambda: "x" * 10_000_000,
            "give returned 10,000,000 characters, and at most 1,000,000 are taken: save it",
        ),
        (lambda: ["x" * 10_000_000], "give returned 10,000,004 characters"),
        (_stream, "give returned a generator: return a list"),
        (_async_stream, "give returned a async_generator: return a list"),
        (_later, "give returned a coroutine that nobody awaits: make the function `async def`"),
        (object, "give returned a object that cannot be written as JSON"),
        (lambda: {"connection": threading.Lock()}, "give returned a dict that cannot be written as JSON"),
        (_round, "give returned a list that cannot be written as JSON (ValueError: Circular reference"),
        (lambda: sys.exit(3), "give ended by SystemExit: return a value"),
        (lambda: next(iter(())), "give failed: RuntimeError: StopIteration"),
        (lambda: 1 / 0, "give failed: ZeroDivisionError: division by zero"),
    ],
)
async def test_what_cannot_be_a_result_fails_the_call_and_says_how_to_mend_it(
    make: Callable[[], object], words: str
) -> None:
    @tool
    def give() -> object:
        return make()

    result = await call(give)
    assert (result.ok, result.outcome) == (False, "failed")
    assert words in result.text
    assert "\n" not in result.text


async def test_a_function_that_never_ends_fails_its_call_when_its_time_is_over() -> None:
    ended: list[str] = []
    never = threading.Event()

    @tool(timeout=0.05)
    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")
        return ""

    @tool(timeout=0.05)
    def block() -> str:
        never.wait()
        return ""

    for made in (wait, block):
        result = await call(made)
        assert result.text == f"{made.name} did not end within 0.05 s and was stopped."
    assert ended == ["wait"]
    never.set()


async def test_a_cancelled_run_cancels_the_coroutine_and_lets_the_thread_go() -> None:
    ended, going, never = [False], threading.Event(), threading.Event()
    told: list[Event] = []

    @tool
    async def wait() -> str:
        going.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended[0] = True
        return ""

    @tool
    def block(ctx: ToolContext) -> str:
        going.set()
        never.wait()
        ctx.emit(ToolOutput(id="c", text="too late"))
        return ""

    for made in (wait, block):
        going.clear()
        working = asyncio.ensure_future(call(made, context(emit=told.append)))
        while not going.is_set():
            await asyncio.sleep(0.001)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
    never.set()
    await asyncio.sleep(0.05)
    assert ended == [True]
    assert told == []


async def test_a_coroutine_that_awaits_what_it_cancelled_fails_its_call_and_not_the_run() -> None:
    @tool
    async def muddle() -> str:
        inner = asyncio.ensure_future(asyncio.sleep(1))
        inner.cancel()
        await inner
        return ""

    assert "muddle was cancelled from within" in (await call(muddle)).text


# -- what functions may be ----------------------------------------------------------------


class Shop:
    """A shop."""

    def price(self, item: str, /, *, many: int = 1) -> int:
        """The price."""
        return len(item) * many

    async def __call__(self, item: str) -> str:
        """Sell it."""
        return item


async def test_methods_partials_and_callable_objects_are_tools_too() -> None:
    shop = Shop()
    assert (await call(tool(shop.price), item="tea", many=2)).text == "6"
    dear = tool(name="dear")(functools.partial(shop.price, many=10))
    assert (await call(dear, item="tea")).text == "30"
    sell = tool(name="sell")(shop)
    assert (sell.description, (await call(sell, item="tea")).text) == ("A shop.", "tea")


async def test_a_local_type_and_a_name_of_pydantics_can_stand_in_a_signature() -> None:
    class Here(BaseModel):
        name: str

    @tool
    def greet(here: Here, schema: str = "", json: int = 0, title: str = "") -> str:
        return f"{here.name} {schema} {json} {title}"

    assert (await call(greet, here={"name": "Ann"}, schema="s", json=2, title="t")).text == "Ann s 2 t"
    assert list(schema(greet)["properties"]) == ["here", "schema", "json", "title"]


async def test_a_default_that_is_a_field_of_pydantic_is_read_as_one() -> None:
    @tool
    def pick(many: int = Field(2, ge=1, description="how many")) -> int:
        return many

    assert schema(pick)["properties"]["many"]["description"] == "how many"
    assert [(await call(pick)).text, (await call(pick, many=0)).ok] == ["2", False]


class Connection:
    pass


def no_hint(a, b: int) -> str:
    return ""


def many(*items: str) -> str:
    return ""


def keywords(**items: str) -> str:
    return ""


def private(_key: str) -> str:
    return ""


def kept(model_dump: str) -> str:
    return ""


def connected(db: Connection) -> str:
    return ""


def called_back(then: Callable[[], int]) -> str:
    return ""


def unknown(a: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821  # that is the point
    return ""


def good(a: int) -> str:
    return ""


@for_each(
    ("make", "kind", "words"),
    [
        (
            lambda: as_tool(no_hint),
            TypeError,
            "parameter 'a' of the tool 'no_hint' has no type hint: write a: str",
        ),
        (lambda: as_tool(many), TypeError, "the tool 'many' takes *items"),
        (lambda: as_tool(keywords), TypeError, "the tool 'keywords' takes **items"),
        (lambda: as_tool(private), ValueError, "parameter '_key' of the tool 'private' begins with `_`"),
        (lambda: as_tool(kept), ValueError, "parameter 'model_dump' of the tool 'kept'"),
        (
            lambda: as_tool(connected),
            TypeError,
            "parameter 'db' of the tool 'connected' cannot come from a model",
        ),
        (lambda: as_tool(called_back), TypeError, "parameter 'then' of the tool 'called_back' cannot come"),
        (lambda: as_tool(unknown), TypeError, "the name 'Nowhere', which is not known"),
        (lambda: as_tool(_stream), TypeError, "the tool '_stream' yields"),
        (lambda: as_tool(_async_stream), TypeError, "the tool '_async_stream' yields"),
        (lambda: as_tool(lambda: 1), ValueError, "needs a name: tool(name=…)"),
        (lambda: as_tool(Shop), TypeError, "not the class Shop"),
        (lambda: as_tool(cast(Any, 3)), TypeError, "tool takes a function, not int 3"),
        (lambda: tool(name="two words")(good), ValueError, "name of the tool must be letters"),
        (lambda: tool(name="a/b/c")(good), ValueError, "name of the tool must be letters"),
        (
            lambda: tool(effect=cast(Any, "writes"))(good),
            ValueError,
            "effect of the tool 'good' must be one of none",
        ),
        (
            lambda: tool(timeout=-1)(good),
            ValueError,
            "timeout of the tool 'good' must be a number of seconds",
        ),
        (lambda: tool(timeout=cast(Any, "1"))(good), ValueError, "timeout of the tool 'good'"),
        (lambda: as_tools((good, good)), ValueError, "tools has two tools named 'good'"),
        (
            lambda: as_tools(cast(Any, "files/*")),
            TypeError,
            "tools must be a list or tuple of tools, not str",
        ),
        (
            lambda: as_tools(cast(Any, good)),
            TypeError,
            "tools must be a list or tuple of tools, not function",
        ),
        (
            lambda: as_tools((3,)),
            TypeError,
            "tools[0] must be a function, a Tool or the name of a built-in tool",
        ),
    ],
)
def test_what_cannot_be_a_tool_is_refused_in_one_sentence_that_names_it(
    make: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as refused:
        make()
    assert type(refused.value) is kind
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_tools_model_agrees_with_the_schema_that_is_sent() -> None:
    """R1.86: what the schema calls required the model requires, and it knows the same arguments."""
    for made in (weather, as_tool(good)):
        sent = schema(made)
        fields: dict[str, Any] = dict(made.args.model_fields)
        assert set(sent["properties"]) == set(fields)
        assert set(sent.get("required", ())) == {name for name, f in fields.items() if f.is_required()}
        assert json.loads(json.dumps(sent)) == sent
