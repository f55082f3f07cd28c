"""`@tool`: people's own functions as tools: schema from type hints and docstring, what they return as result."""

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
from daiku.tools.tool import Args, Tool, ToolContext, failed

if TYPE_CHECKING:
    from daiku.tools.signature import Signature

AnyFunction = Callable[..., object]

DEFAULT_SECONDS = 600.0
"""The time of a call where the tool says none: nothing that never ends holds up a run for ever."""
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

    The model is told the docstring, and of each parameter its type, its text in the docstring (in the form of
    Google, NumPy or reST) and whether it may be left out. A parameter annotated `ToolContext` is handed in and not
    shown. A synchronous function runs in a thread (R1.74), one that is `async` on the event loop. It returns text,
    or anything that pydantic can write as JSON; what it raises is the failure of its call, not of the run.

    `effect` is what a call changes: it decides whether a person is asked first. With `parallel`, calls of one reply
    may run side by side. `timeout` is in seconds, 0 means ten minutes. Raises TypeError or ValueError that names
    the argument, or the parameter of the function, that is wrong."""
    made = partial(_tool_of, name=name, effect=effect, parallel=parallel, timeout=timeout)
    names = _local_names()
    return partial(made, names=names) if function is None else made(function, names=names)


def as_tool(function: AnyFunction) -> Tool:
    """A plain function as a tool that changes nothing (R1.19). Raises as `tool`."""
    return _tool_of(function, name="", effect="none", parallel=False, timeout=0, names={})


def as_tools(given: Iterable[object]) -> tuple[Tool | str, ...]:
    """Tools as an agent is given them: functions become tools, names and patterns of built-in tools stay. Raises
    TypeError for what is no tool, ValueError for two of one name; both name the argument `tools`."""
    if isinstance(given, str) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # people's own code
        raise TypeError(f"tools must be a list or tuple of tools, not {_shown(given)}: write tools=(…,)")
    found: list[Tool | str] = []
    for place, each in enumerate(given):
        if isinstance(each, Tool | str):
            found.append(each)
        elif callable(each):
            found.append(as_tool(each))
        else:
            raise TypeError(
                f"tools[{place}] must be a function, a Tool or the name of a built-in tool, not {_shown(each)}"
            )
    names = [each.name for each in found if isinstance(each, Tool)]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise ValueError(f"tools has two tools named {twice!r}: give one of them another name, @tool(name=…)")
    return tuple(found)


def _tool_of(
    function: AnyFunction, *, name: str, effect: Effect, parallel: bool, timeout: float, names: dict[str, Any]
) -> Tool:
    from daiku.tools.signature import read_docstring, read_signature  # when used

    if not callable(function):
        raise TypeError(f"tool takes a function, not {_shown(function)}")
    if isinstance(function, type):
        raise TypeError(f"tool takes a function, not the class {function.__name__}: give one of its methods")
    called = _checked_name(name or getattr(function, "__name__", ""))
    if effect not in get_args(Effect):
        raise ValueError(
            f"effect of the tool {called!r} must be one of {', '.join(get_args(Effect))}, not {effect!r}"
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]  # people's own code
        raise ValueError(
            f"timeout of the tool {called!r} must be a number of seconds, 0 or more, not {timeout!r}"
        )
    about, parameters = read_docstring(_docstring(function))
    signature = read_signature(function, called, parameters, names)
    return Tool(
        called,
        effect,
        signature.args,
        _Call(called, function, signature, _is_async(function)),
        parallel=bool(parallel),
        timeout=timeout or DEFAULT_SECONDS,
        description=about or called,
    )


def _checked_name(name: str) -> str:
    if name == "<lambda>" or not name:
        raise ValueError("a tool that is no named function needs a name: tool(name=…)")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"name of the tool must be letters, digits, `_`, `-`, `.` and at most one `/`, not {name!r}"
        )
    return name


def _docstring(function: AnyFunction) -> str:
    own = function.func if isinstance(function, partial) else function
    if not inspect.isroutine(own):
        own = type(own).__call__ if own.__doc__ == type(own).__doc__ is None else own
    return own.__doc__ or ""


def _is_async(function: AnyFunction) -> bool:
    """Whether calling it gives a coroutine; also of a partial and of an object with such a `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # asked for its kind, not whether there is one
    )


def _local_names() -> dict[str, Any]:
    """The names around the decorated function: a type that is local there can stand in its hints."""
    here = inspect.currentframe()
    caller = here.f_back.f_back if here is not None and here.f_back is not None else None
    return {} if caller is None or caller.f_locals is caller.f_globals else dict(caller.f_locals)


def _shown(value: object) -> str:
    written = repr(value)
    return f"{type(value).__name__} {written if len(written) <= 60 else written[:60] + '…'}"


@dataclass(frozen=True, slots=True)
class _Call:
    """What `Tool.run` is of a function: calls it with its arguments, on the loop or in a thread."""

    name: str
    function: AnyFunction
    signature: Signature
    on_loop: bool

    async def __call__(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import CalledExit  # when used

        try:
            return await (self._on_loop(args, context) if self.on_loop else self._in_thread(args, context))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return failed(
                f"{self.name} was cancelled from within: it must not await what it cancelled itself."
            )
        except (CalledExit, SystemExit) as error:
            what = error.args[0] if isinstance(error, CalledExit) else type(error).__name__
            return failed(
                f"{self.name} ended by {what}: return a value, or raise an Exception that says what is wrong."
            )

    async def _on_loop(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import TOOL_THREADS  # when used

        waited = self._called(args, context)
        value: object = await cast("Awaitable[object]", waited) if isinstance(waited, Awaitable) else waited
        if isinstance(value, str | None):
            return result_of(self.name, value)
        return await TOOL_THREADS.run(partial(result_of, self.name, value))  # a large one takes its time

    async def _in_thread(self, args: Args, context: ToolContext) -> ToolResult:
        from daiku.tools.threads import TOOL_THREADS  # when used

        events = _FromThread(context.emit, asyncio.get_running_loop()) if self.signature.context else None
        handed = context if events is None else replace(context, emit=events)
        try:
            return await TOOL_THREADS.run(lambda: result_of(self.name, self._called(args, handed)))
        finally:
            if events is not None:
                events.open = False

    def _called(self, args: Args, context: ToolContext) -> object:
        positional, named = self.signature.values(args, context)
        return self.function(*positional, **named)


@dataclass(slots=True)
class _FromThread:
    """`ToolContext.emit` for a function in a thread: what it tells reaches the run on its own loop, and nothing
    does once the call has ended."""

    emit: Callable[[Event], None]
    loop: asyncio.AbstractEventLoop
    open: bool = True

    def __call__(self, event: Event) -> None:
        self.loop.call_soon_threadsafe(self._emit, event)

    def _emit(self, event: Event) -> None:
        if self.open:
            self.emit(event)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


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
