"""The decorator `@tool`: functions as tools, with a schema from type hints and docstring."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args, overload

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.events import Event
from daiku.domain.tools import Effect, ToolResult
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.patterns import lazy
from daiku.tools.tool import Args, Tool, ToolContext, build_failure

if TYPE_CHECKING:
    from daiku.tools.signature import Signature

AnyFunction = Callable[..., object]

DEFAULT_SECONDS = 600.0
"""Seconds of the default timeout of a call, so that no call blocks a run forever."""
_NAME = lazy(r"[\w.-]+(?:/[\w.-]+)?")


@overload
def tool(function: AnyFunction, /) -> Tool: ...
@overload
def tool(
    *, name: str = "", effect: Effect = "none", parallel: bool = False, timeout: float = 0
) -> Callable[[AnyFunction], Tool]: ...
def tool(
    function: AnyFunction | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "none",
    parallel: bool = False,
    timeout: float = 0,
) -> Tool | Callable[[AnyFunction], Tool]:
    """Make a function a tool: `@tool`, or `@tool(name=…, effect=…, parallel=…, timeout=…)` (R1.19, R1.36).

    The model gets the docstring, and for each parameter its type, its text in the docstring (Google, NumPy,
    or reST), and whether it is optional. A parameter annotated `ToolContext` is filled in and not shown. A
    synchronous function runs in a thread (R1.74), an `async` one on the event loop. It returns text, or
    anything that pydantic can write as JSON; an exception fails its call, not the run.

    `effect` is what a call changes; it decides whether the user must approve. With `parallel`, calls of one
    reply may run in parallel. `timeout` is in seconds, 0 means ten minutes. Raises TypeError or ValueError
    that names the wrong argument, or the wrong parameter of the function.
    """
    build = partial(_build_tool, name=name, effect=effect, parallel=parallel, timeout=timeout)
    names = _read_local_names()
    return partial(build, names=names) if function is None else build(function, names=names)


def as_tool(function: AnyFunction) -> Tool:
    """Convert a function to a tool without effects (R1.19). Raises as `tool`."""
    return _build_tool(function, name="", effect="none", parallel=False, timeout=0, names={})


def as_tools(items: Iterable[object]) -> tuple[Tool | str, ...]:
    """Convert an agent's tools: functions become tools, names and patterns of built-in tools stay.

    Raises TypeError for anything else, ValueError for a duplicate name; both name the argument `tools`.
    """
    if isinstance(items, str) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # people's own code
        raise TypeError(
            f"tools must be a list or tuple of tools, not {_describe_value(items)}: write tools=(…,)"
        )
    converted: list[Tool | str] = []
    for index, item in enumerate(items):
        if isinstance(item, Tool | str):
            converted.append(item)
        elif callable(item):
            converted.append(as_tool(item))
        else:
            raise TypeError(
                f"tools[{index}] must be a function, a Tool or the name of a built-in tool, not {_describe_value(item)}"
            )
    names = [item.name for item in converted if isinstance(item, Tool)]
    if (duplicate := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise ValueError(
            f"tools has two tools named {duplicate!r}: give one of them another name, @tool(name=…)"
        )
    return tuple(converted)


def _build_tool(
    function: AnyFunction, *, name: str, effect: Effect, parallel: bool, timeout: float, names: dict[str, Any]
) -> Tool:
    from daiku.tools.signature import read_docstring, read_signature  # when used

    if not callable(function):
        raise TypeError(f"tool takes a function, not {_describe_value(function)}")
    if isinstance(function, type):
        raise TypeError(f"tool takes a function, not the class {function.__name__}: give one of its methods")
    called = _check_name(name or getattr(function, "__name__", ""))
    if effect not in get_args(Effect):
        raise ValueError(
            f"effect of the tool {called!r} must be one of {', '.join(get_args(Effect))}, not {effect!r}"
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]  # people's own code
        raise ValueError(
            f"timeout of the tool {called!r} must be a number of seconds, 0 or more, not {timeout!r}"
        )
    description, parameters = read_docstring(_find_docstring(function))
    signature = read_signature(function, called, parameters, names)
    return Tool(
        called,
        effect,
        signature.args,
        _FunctionCall(called, function, signature, _is_async(function)),
        parallel=bool(parallel),
        timeout=timeout or DEFAULT_SECONDS,
        description=description or called,
    )


def _check_name(name: str) -> str:
    if name == "<lambda>" or not name:
        raise ValueError("a tool that is no named function needs a name: tool(name=…)")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"name of the tool must be letters, digits, `_`, `-`, `.` and at most one `/`, not {name!r}"
        )
    return name


def _find_docstring(function: AnyFunction) -> str:
    target = function.func if isinstance(function, partial) else function
    if not inspect.isroutine(target):
        target = type(target).__call__ if target.__doc__ == type(target).__doc__ is None else target
    return target.__doc__ or ""


def _is_async(function: AnyFunction) -> bool:
    """Return True if a call returns a coroutine; also for a partial and an object with such a `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # its kind matters, not its presence
    )


def _read_local_names() -> dict[str, Any]:
    """Return the local names around the decorated function, which its type hints may use."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return {} if caller is None or caller.f_locals is caller.f_globals else dict(caller.f_locals)


def _describe_value(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:60] + '…'}"


@dataclass(frozen=True, slots=True)
class _FunctionCall:
    """`Tool.run` of a function: calls it with its arguments, on the loop or in a thread."""

    name: str
    function: AnyFunction
    signature: Signature
    on_loop: bool

    async def __call__(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import CalledExit  # when used

        try:
            return await (
                self._run_on_loop(args, context) if self.on_loop else self._run_in_thread(args, context)
            )
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return build_failure(
                f"{self.name} was cancelled from within: it must not await what it cancelled itself."
            )
        except (CalledExit, SystemExit) as error:
            cause = error.args[0] if isinstance(error, CalledExit) else type(error).__name__
            return build_failure(
                f"{self.name} ended by {cause}: return a value, or raise an Exception that says what is wrong."
            )

    async def _run_on_loop(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import TOOL_THREADS  # when used

        returned = self._call_function(args, context)
        value: object = (
            await cast("Awaitable[object]", returned) if isinstance(returned, Awaitable) else returned
        )
        if isinstance(value, str | None):
            return build_result(self.name, value)
        # In a thread, because converting a large value takes time.
        return await TOOL_THREADS.run(partial(build_result, self.name, value))

    async def _run_in_thread(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import TOOL_THREADS  # when used

        emitter = _ThreadEmitter(context.emit, asyncio.get_running_loop()) if self.signature.context else None
        thread_context = context if emitter is None else replace(context, emit=emitter)
        try:
            return await TOOL_THREADS.run(
                lambda: build_result(self.name, self._call_function(args, thread_context))
            )
        finally:
            if emitter is not None:
                emitter.is_open = False

    def _call_function(self, args: Args, context: ToolContext) -> object:
        positional, named = self.signature.build_arguments(args, context)
        return self.function(*positional, **named)


@dataclass(slots=True)
class _ThreadEmitter:
    """`ToolContext.emit` for a function in a thread: events reach the run on its loop, until the call ends."""

    emit: Callable[[Event], None]
    loop: asyncio.AbstractEventLoop
    is_open: bool = True

    def __call__(self, event: Event) -> None:
        self.loop.call_soon_threadsafe(self._emit, event)

    def _emit(self, event: Event) -> None:
        if self.is_open:
            self.emit(event)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


MAX_CHARACTERS = 1_000_000
"""Characters of one result. A model gets far fewer, but programs read all of it in the journal."""
_RETURN_ADVICE = "save it to a file and return the file's path, or return the part that was asked for"


def build_result(name: str, value: object) -> ToolResult:
    """Build the result of the tool `name` whose function returned `value`.

    Text is the result unchanged. Anything else that pydantic can write as JSON is JSON for the model, and in
    `data` for programs: an object unchanged, any other value under the key `result`.
    """
    called, kind = wire_name(name), type(value).__name__
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(ok=True, text="done")
    if isinstance(value, str):
        return _check_length(called, value) or ToolResult(ok=True, text=_replace_surrogates(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return build_failure(
            f"{called} returned {kind}, and a model reads text: decode them, or {_RETURN_ADVICE}."
        )
    if isinstance(value, Awaitable):
        _close_coroutine(cast("object", value))
        return build_failure(
            f"{called} returned a {kind} that nobody awaits: make the function `async def` and `await` inside it."
        )
    if isinstance(value, Iterator | AsyncIterator):
        return build_failure(f"{called} returned a {kind}: return a list of what it yields.")
    return _build_json_result(called, value)


def _build_json_result(called: str, value: object) -> ToolResult:
    try:
        text = to_json(value, inf_nan_mode="strings").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).removeprefix("Error serializing to JSON: ").split())[:200]
        return build_failure(
            f"{called} returned a {type(value).__name__} that cannot be written as JSON ({reason}): return text, "
            "numbers, lists, dicts, dataclasses or pydantic models."
        )
    parsed: JsonValue = json.loads(text)
    data: JsonObject = parsed if isinstance(parsed, dict) else {"result": parsed}
    return _check_length(called, text) or ToolResult(ok=True, text=text, data=data)


def _check_length(called: str, text: str) -> ToolResult | None:
    if len(text) <= MAX_CHARACTERS:
        return None
    return build_failure(
        f"{called} returned {len(text):,} characters, and at most {MAX_CHARACTERS:,} are taken: {_RETURN_ADVICE}."
    )


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks: no file or service accepts them."""
    return text.encode("utf-8", "replace").decode()


def _close_coroutine(value: object) -> None:
    """Close a coroutine that never started; otherwise Python warns that it was not awaited."""
    if (close := getattr(value, "close", None)) is not None:
        close()
