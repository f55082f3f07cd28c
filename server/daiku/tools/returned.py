"""What a person's function returned, made the result of its call; what cannot be one fails the call, and says why."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import cast

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from daiku.core.calls.toolnames import wire_name
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolResult
from daiku.tools.tool import failed

MOST_CHARACTERS = 1_000_000
"""Of one result: a model is shown far less, but programs read all of it in the journal."""
_KEEP_APART = "save it to a file and return the file's path, or return the part that was asked for"


def result_of(name: str, value: object) -> ToolResult:
    """The result of a call of the tool `name` whose function returned `value`.

    Text is the result as it is; anything else that pydantic can write as JSON is told to the model as JSON, and
    is in `data` for programs: an object as it is, another value under the key `result`."""
    called, kind = wire_name(name), type(value).__name__
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(ok=True, text="done")
    if isinstance(value, str):
        return _too_long(called, value) or ToolResult(ok=True, text=_as_utf8(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return failed(f"{called} returned {kind}, and a model reads text: decode them, or {_KEEP_APART}.")
    if isinstance(value, Awaitable):
        _close(cast("object", value))
        return failed(
            f"{called} returned a {kind} that nobody awaits: make the function `async def` and `await` inside it."
        )
    if isinstance(value, Iterator | AsyncIterator):
        return failed(f"{called} returned a {kind}: return a list of what it yields.")
    return _as_json(called, value)


def _as_json(called: str, value: object) -> ToolResult:
    try:
        text = to_json(value, inf_nan_mode="strings").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        why = " ".join(str(error).removeprefix("Error serializing to JSON: ").split())[:200]
        return failed(
            f"{called} returned a {type(value).__name__} that cannot be written as JSON ({why}): return text, "
            "numbers, lists, dicts, dataclasses or pydantic models."
        )
    found: JsonValue = json.loads(text)
    data: JsonObject = found if isinstance(found, dict) else {"result": found}
    return _too_long(called, text) or ToolResult(ok=True, text=text, data=data)


def _too_long(called: str, text: str) -> ToolResult | None:
    if len(text) <= MOST_CHARACTERS:
        return None
    return failed(
        f"{called} returned {len(text):,} characters, and at most {MOST_CHARACTERS:,} are taken: {_KEEP_APART}."
    )


def _as_utf8(text: str) -> str:
    """`text` with a question mark for each half of a character, which no file and no service takes."""
    return text.encode("utf-8", "replace").decode()


def _close(value: object) -> None:
    """A coroutine that is not begun is closed, else Python warns that it was never awaited."""
    if (close := getattr(value, "close", None)) is not None:
        close()
