"""Guardrail that checks the input and output of a run against a schema, patterns, and functions."""

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
"""A pydantic model, any type that pydantic can validate, or a JSON schema as a mapping."""
CustomFunc: TypeAlias = Callable[[Any], Any]
"""Function of the data, sync or async, that returns None or `{action, reason}`."""
PASS: GuardrailAnswer = {"action": "pass", "reason": ""}
ACTIONS: tuple[GuardrailAction, ...] = get_args(GuardrailAction)
MAX_PATTERN_CHARACTERS = 120
"""Maximum characters of a pattern in a message."""


def block(reason: Text) -> GuardrailAnswer:
    """Return the answer that blocks, with `reason`."""
    return {"action": "block", "reason": reason}


class Guardrail:
    """Check of inputs and outputs (R1.45) by a schema each, by blocked patterns, and by custom functions.

    The first block counts; otherwise all warnings are combined.

    `input_schema`, `output_schema`: a pydantic model, any type that pydantic can validate, or a JSON schema; text is
    validated as it is, and as JSON. `regex_blocks`: regular expressions (text or compiled), matched against the text,
    and against it without hidden and look-alike characters; a pattern that takes too long blocks. `custom_funcs`:
    functions of the data, sync (run in a thread) or async, that return None or `{action, reason}`; an exception
    blocks.

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
        self._input = _build_check(input_schema, "input_schema")
        self._output = _build_check(output_schema, "output_schema")
        self._patterns = tuple(_compile_patterns(regex_blocks))
        self._functions = tuple(_check_functions(custom_funcs))

    @property
    def judges_output(self) -> bool:
        """True if it can block outputs. Then no output is shown before it has passed."""
        return bool(self._output or self._patterns or self._functions)

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Check the input of a run (R1.46)."""
        return await self._judge(data, self._input)

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Check the output of a run (R1.47)."""
        return await self._judge(data, self._output)

    async def screen_input(self, data: object) -> GuardrailAnswer:
        """Check what the user adds to a request: attachments, and messages during the run. No schema applies."""
        return await self._judge(data, None)

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Check model output other than the answer: tool arguments, and text next to calls. No schema applies."""
        return await self._judge(data, None)

    async def _judge(self, data: object, schema: _Check | None) -> GuardrailAnswer:
        if schema is not None and (problem := schema(data)):
            return block(problem)
        if self._patterns:
            from daiku.guard.guardrails.matching import search  # when used

            match = await search(self._patterns, to_text(data))
            if match.blocks:
                return block(_describe_match(match.pattern, match.trouble))
        warnings: list[str] = []
        for function in self._functions:
            answer = await _call_function(function, data)
            if answer["action"] == "block":
                return answer
            if answer["action"] == "warn":
                warnings.append(answer["reason"])
        return {"action": "warn", "reason": joined("sentences", warnings)} if warnings else PASS


def build_failure(reason: str) -> Failure:
    """Return the failure of a run that a guardrail ended."""
    why = as_text(reason)
    return Failure(
        kind="guardrail",
        message=text("guardrails.blocked", why=why) if why else text("guardrails.blocked_silently"),
        hint=text("guardrails.say_it_differently"),
    )


def to_text(data: object) -> str:
    """Return every name and value in `data` as text, one per line; a string unchanged."""
    if isinstance(data, str):
        return data
    plain = cast("JsonValue", to_jsonable_python(data, fallback=str))
    return "\n".join(leaves(plain))


_Check: TypeAlias = Callable[[object], Text]
"""Returns what is wrong with the data; empty if nothing is."""


def _build_check(schema: Schema | None, argument: str) -> _Check | None:
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        json_schema = dict(cast("Mapping[str, JsonValue]", schema))
        return lambda data: _check_json_schema(data, json_schema)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
    except (PydanticUserError, TypeError, NameError) as error:
        raise TypeError(
            f"{argument} must be a pydantic model, a type that pydantic can check or a JSON schema, "
            f"not {schema!r:.100}"
        ) from error
    return lambda data: _check_type(data, adapter)


def _check_type(data: object, adapter: TypeAdapter[Any]) -> Text:
    try:
        adapter.validate_python(data)
    except ValidationError as error:
        if not isinstance(data, str):
            return _describe_errors(error)
        try:
            adapter.validate_json(_strip_fence(data))
        except ValidationError as json_error:
            return _describe_errors(json_error)
    except Exception as exception:  # noqa: BLE001  # custom validator: any exception blocks
        return _describe_exception("schema", exception)
    return NO_TEXT


def _describe_errors(error: ValidationError) -> Text:
    """Return the first problems, without the values, which may be secret."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        ": ".join(part for part in (".".join(map(str, e["loc"])), e["msg"]) if part) for e in problems[:3]
    ]
    return text("guardrails.schema", what="; ".join(lines))


def _check_json_schema(data: object, schema: JsonObject) -> Text:
    try:
        if isinstance(data, str) and schema.get("type") != "string":
            value = json.loads(_strip_fence(data))
        else:
            value = to_jsonable_python(data)
    except ValueError as error:
        return text("guardrails.schema", what=str(error))
    return (
        text("guardrails.schema", what="; ".join(problems))
        if (problems := problems_of(schema, value))
        else NO_TEXT
    )


def _strip_fence(json_text: str) -> str:
    """Return JSON without the fence that models put around it."""
    json_text = json_text.strip()
    if not (json_text.startswith("```") and json_text.endswith("```")):
        return json_text
    return json_text.removeprefix("```").removesuffix("```").strip().removeprefix("json").strip()


def _compile_patterns(patterns: Sequence[str | re.Pattern[str]] | None) -> Iterator[re.Pattern[str]]:
    if isinstance(patterns, str | re.Pattern):
        raise TypeError("regex_blocks must be a list of regular expressions, not one of them")
    for index, pattern in enumerate(patterns or ()):
        try:
            yield re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(
                f"regex_blocks[{index}] is no regular expression: {pattern!r} ({error})"
            ) from error
        except TypeError as error:
            raise TypeError(
                f"regex_blocks[{index}] must be a regular expression, not {pattern!r:.100}"
            ) from error


def _check_functions(functions: Sequence[CustomFunc] | None) -> Iterator[CustomFunc]:
    if callable(functions):
        raise TypeError("custom_funcs must be a list of functions, not one function")
    for index, function in enumerate(functions or ()):
        if not callable(function):
            raise TypeError(f"custom_funcs[{index}] must be a function of the data, not {function!r:.100}")
        yield function


async def _call_function(function: CustomFunc, data: object) -> GuardrailAnswer:
    """Return the answer of a custom function. Any error in it blocks."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        if inspect.iscoroutinefunction(function):
            result = await function(data)
        else:
            result = await asyncio.to_thread(_call_catching, function, data)
            if isinstance(result, Exception):
                return block(_describe_exception(name, result))
            if inspect.isawaitable(result):
                result = await cast("Awaitable[object]", result)
    except Exception as error:  # noqa: BLE001  # the person's own code: what it raises does not pass
        return block(_describe_exception(name, error))
    if result is None:
        return PASS
    fields = _to_fields(result)
    action: GuardrailAction | None = next((known for known in ACTIONS if known == fields.get("action")), None)
    if action is None:
        return block(text("guardrails.wrong_answer", name=name, what=type(result).__name__))
    reason = fields.get("reason") or text("guardrails.no_reason", name=name)
    return GuardrailAnswer(action=action, reason=reason if isinstance(reason, str) else str(reason))


def _to_fields(result: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", result) if isinstance(result, Mapping) else {}


def _call_catching(function: CustomFunc, data: object) -> object:
    """Return the function's result or its exception, as a StopIteration cannot leave a thread."""
    try:
        return function(data)
    except Exception as error:  # noqa: BLE001  # the person's own code: what it raises does not pass
        return error


def _describe_exception(name: str, error: Exception) -> Text:
    return text("guardrails.raised", name=name, what=type(error).__name__)


def _describe_match(pattern: str, trouble: str) -> Text:
    shortened = pattern if len(pattern) <= MAX_PATTERN_CHARACTERS else pattern[:MAX_PATTERN_CHARACTERS] + "…"
    match trouble:
        case "slow":
            return text("guardrails.slow", pattern=shortened)
        case "unavailable":
            return text("guardrails.unavailable", pattern=shortened)
        case _:
            return text("guardrails.pattern", pattern=shortened)
