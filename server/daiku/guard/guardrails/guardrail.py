"""The Guardrail: a schema, patterns and functions that judge what goes into a run and what comes out of it."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast, get_args

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure
from daiku.domain.guardrails import GuardrailAction, GuardrailAnswer
from daiku.guard.rules.guardrails.written import leaves
from daiku.run.rules.calls.jsonargs import problems_of
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text

Schema: TypeAlias = Any
"""A pydantic model, any type that pydantic can check, or a JSON schema as a mapping."""
CustomFunc: TypeAlias = Callable[[Any], Any]
"""A function of the data, sync or async, that returns None or `{action, reason}`."""
PASS: GuardrailAnswer = {"action": "pass", "reason": ""}
ACTIONS: tuple[GuardrailAction, ...] = get_args(GuardrailAction)
SHOWN_PATTERN = 120


def block(reason: Text) -> GuardrailAnswer:
    """The answer that lets nothing through."""
    return {"action": "block", "reason": reason}


class Guardrail:
    """Judges inputs and outputs (R1.45): against a schema each, against patterns that must not stand in them, and by
    functions of your own. The first block counts, else every warning.

    `input_schema`, `output_schema`: a pydantic model, any type that pydantic can check, or a JSON schema; text is
    checked as it stands, and as the JSON that it holds. `regex_blocks`: regular expressions (text, or compiled); they
    are looked for in the text as it stands, and in it without hidden characters and look-alike letters. One that
    takes too long blocks. `custom_funcs`: functions of the data, sync (in a thread) or async, that return None or
    `{action, reason}`; what one raises blocks.

    Raises TypeError and ValueError, each with the argument's name.
    """

    def __init__(
        self,
        *,
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        regex_blocks: Sequence[str | re.Pattern[str]] | None = None,
        custom_funcs: Sequence[CustomFunc] | None = None,
    ) -> None:
        self._input = _checker(input_schema, "input_schema")
        self._output = _checker(output_schema, "output_schema")
        self._patterns = tuple(_patterns(regex_blocks))
        self._functions = tuple(_functions(custom_funcs))

    @property
    def judges_output(self) -> bool:
        """Whether any output can be blocked by it: then nothing of an output is shown before it has passed."""
        return bool(self._output or self._patterns or self._functions)

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Judge what a run is asked (R1.46)."""
        return await self._judge(data, self._input)

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Judge what a run answers (R1.47)."""
        return await self._judge(data, self._output)

    async def screen_input(self, data: object) -> GuardrailAnswer:
        """Judge what a person hands in besides a request: what comes along, what is said meanwhile. No schema applies
        to that."""
        return await self._judge(data, None)

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Judge what a model writes besides its answer: a tool's arguments, the words beside a call. No schema applies
        to that."""
        return await self._judge(data, None)

    async def _judge(self, data: object, schema: _Check | None) -> GuardrailAnswer:
        if schema is not None and (wrong := schema(data)):
            return block(wrong)
        if self._patterns:
            from daiku.guard.guardrails.matching import search  # when used

            found = await search(self._patterns, text_of(data))
            if found.blocks:
                return block(_why(found.pattern, found.trouble))
        warned: list[str] = []
        for function in self._functions:
            answer = await _ask(function, data)
            if answer["action"] == "block":
                return answer
            if answer["action"] == "warn":
                warned.append(answer["reason"])
        return {"action": "warn", "reason": joined("sentences", warned)} if warned else PASS


def violation(reason: str) -> Failure:
    """The failure of a run that a guardrail ends."""
    said = as_text(reason)
    return Failure(
        kind="guardrail",
        message=text("guardrails.blocked", why=said) if said else text("guardrails.blocked_silently"),
        hint=text("guardrails.say_it_differently"),
    )


def text_of(data: object) -> str:
    """Every name and value in `data` as text, one a line; text as it stands."""
    if isinstance(data, str):
        return data
    plain = cast("JsonValue", to_jsonable_python(data, fallback=str))
    return "\n".join(leaves(plain))


_Check: TypeAlias = Callable[[object], Text]
"""What is wrong with the data, empty where nothing is."""


def _checker(schema: Schema | None, argument: str) -> _Check | None:
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        wanted = dict(cast("Mapping[str, JsonValue]", schema))
        return lambda data: _against_json_schema(data, wanted)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
    except (PydanticUserError, TypeError, NameError) as wrong:
        raise TypeError(
            f"{argument} must be a pydantic model, a type that pydantic can check or a JSON schema, "
            f"not {schema!r:.100}"
        ) from wrong
    return lambda data: _against_type(data, adapter)


def _against_type(data: object, adapter: TypeAdapter[Any]) -> Text:
    try:
        adapter.validate_python(data)
    except ValidationError as wrong:
        if not isinstance(data, str):
            return _misfit(wrong)
        try:
            adapter.validate_json(_bare(data))
        except ValidationError as of_json:
            return _misfit(of_json)
    except Exception as error:  # noqa: BLE001  # a validator of the person's own: what it raises does not pass
        return _raised("schema", error)
    return NO_TEXT


def _misfit(wrong: ValidationError) -> Text:
    """The first problems, without the values: they may be what must not be shown."""
    found = wrong.errors(include_url=False, include_input=False, include_context=False)
    lines = [": ".join(part for part in (".".join(map(str, e["loc"])), e["msg"]) if part) for e in found[:3]]
    return text("guardrails.schema", what="; ".join(lines))


def _against_json_schema(data: object, schema: JsonObject) -> Text:
    try:
        if isinstance(data, str) and schema.get("type") != "string":
            value = json.loads(_bare(data))
        else:
            value = to_jsonable_python(data)
    except ValueError as wrong:
        return text("guardrails.schema", what=str(wrong))
    return (
        text("guardrails.schema", what="; ".join(found)) if (found := problems_of(schema, value)) else NO_TEXT
    )


def _bare(said: str) -> str:
    """JSON without the fence that models put around it."""
    said = said.strip()
    if not (said.startswith("```") and said.endswith("```")):
        return said
    return said.removeprefix("```").removesuffix("```").strip().removeprefix("json").strip()


def _patterns(given: Sequence[str | re.Pattern[str]] | None) -> Iterator[re.Pattern[str]]:
    if isinstance(given, str | re.Pattern):
        raise TypeError("regex_blocks must be a list of regular expressions, not one of them")
    for at, pattern in enumerate(given or ()):
        try:
            yield re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as wrong:
            raise ValueError(f"regex_blocks[{at}] is no regular expression: {pattern!r} ({wrong})") from wrong
        except TypeError as wrong:
            raise TypeError(
                f"regex_blocks[{at}] must be a regular expression, not {pattern!r:.100}"
            ) from wrong


def _functions(given: Sequence[CustomFunc] | None) -> Iterator[CustomFunc]:
    if callable(given):
        raise TypeError("custom_funcs must be a list of functions, not one function")
    for at, function in enumerate(given or ()):
        if not callable(function):
            raise TypeError(f"custom_funcs[{at}] must be a function of the data, not {function!r:.100}")
        yield function


async def _ask(function: CustomFunc, data: object) -> GuardrailAnswer:
    """What a function says; whatever is wrong with it blocks."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        if inspect.iscoroutinefunction(function):
            said = await function(data)
        else:
            said = await asyncio.to_thread(_call, function, data)
            if isinstance(said, Exception):
                return block(_raised(name, said))
            if inspect.isawaitable(said):
                said = await cast("Awaitable[object]", said)
    except Exception as error:  # noqa: BLE001  # the person's own code: what it raises does not pass
        return block(_raised(name, error))
    if said is None:
        return PASS
    told = _fields(said)
    action: GuardrailAction | None = next((each for each in ACTIONS if each == told.get("action")), None)
    if action is None:
        return block(text("guardrails.wrong_answer", name=name, what=type(said).__name__))
    reason = told.get("reason") or text("guardrails.no_reason", name=name)
    return GuardrailAnswer(action=action, reason=reason if isinstance(reason, str) else str(reason))


def _fields(said: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", said) if isinstance(said, Mapping) else {}


def _call(function: CustomFunc, data: object) -> object:
    """What the function returns or raises: a StopIteration cannot cross from a thread."""
    try:
        return function(data)
    except Exception as error:  # noqa: BLE001  # the person's own code: what it raises does not pass
        return error


def _raised(name: str, error: Exception) -> Text:
    return text("guardrails.raised", name=name, what=type(error).__name__)


def _why(pattern: str, trouble: str) -> Text:
    shown = pattern if len(pattern) <= SHOWN_PATTERN else pattern[:SHOWN_PATTERN] + "…"
    match trouble:
        case "slow":
            return text("guardrails.slow", pattern=shown)
        case "unavailable":
            return text("guardrails.unavailable", pattern=shown)
        case _:
            return text("guardrails.pattern", pattern=shown)
