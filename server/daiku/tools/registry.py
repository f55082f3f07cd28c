"""The catalogue of tools: finding one by any of its names, checking arguments, running it bounded."""

from __future__ import annotations

import asyncio
import json
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError, HandoffDepthExceeded
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.run.rules.calls.arguments import explain_problems, parse_arguments, schema_text, usage
from daiku.run.rules.calls.jsonargs import problems_of, repair_args, usage_of
from daiku.run.rules.calls.toolnames import (
    candidate_names,
    foreign_name,
    match_spelling,
    nearest_names,
    wire_name,
)
from daiku.run.rules.calls.toolsets import group_names, prompt_stub
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.texts.text import NO_TEXT, Text
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed

CACHED = 256
"""Loaded tools kept ready (R1.38)."""


class LoadedTool(NamedTuple):
    """A tool with its schema worked out."""

    tool: Tool
    schema_json: str


def _unchanged(text: str) -> str:
    return text


class ToolRegistry:
    """Every tool by name. `redact` takes secrets out of the text of unexpected errors. Later tools of
    the same name replace earlier ones."""

    def __init__(self, tools: Iterable[Tool], *, redact: Callable[[str], str] = _unchanged) -> None:
        self._tools: MutableMapping[str, Tool] = {}
        self._wire: MutableMapping[str, str] = {}
        self._redact = redact
        self._above: WeakKeyDictionary[object, ToolRegistry] = WeakKeyDictionary()
        self.bottom = self
        """The registry that holds what everybody shares."""
        self._load = lru_cache(maxsize=CACHED)(self._load_now)
        self._specs: tuple[ToolSpec, ...] | None = None
        self.add(tools)

    def add(self, tools: Iterable[Tool]) -> None:
        """Take in more tools, as when an MCP server has answered."""
        for tool in tools:
            self._tools[tool.name] = tool
            self._wire[wire_name(tool.name)] = tool.name
        self._forget()

    def remove(self, names: Iterable[str]) -> None:
        """Take tools out; names that are not there are ignored."""
        for name in names:
            self._tools.pop(name, None)
            self._wire.pop(wire_name(name), None)
        self._forget()

    def with_own(self, owner: object, tools: Callable[[], Iterable[Tool]]) -> ToolRegistry:
        """The tools of `owner` on top of the shared ones, in place of those of the same name; the same registry
        for the same owner."""
        found = self.bottom._above.get(owner)
        if found is None:
            found = self.bottom._above[owner] = ToolRegistry((), redact=self._redact)
            found.bottom = self.bottom
            found._tools = ChainMap({}, self.bottom._tools)
            found._wire = ChainMap({}, self.bottom._wire)
            found.add(tools())
        return found

    def _forget(self) -> None:
        self._load.cache_clear()
        self._specs = None
        for above in self._above.values():
            above._forget()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def resolve(self, name: str) -> str | None:
        """The canonical name for `name`: itself, its wire name, `a.b`, `a_b`, a seed's name, or the name that another
        program gives to such a tool; else None."""
        own = self.taken(name) or self._wire.get(wire_name(name)) or match_spelling(name, self._tools)
        return own or next((each for each in (foreign_name(name),) if each in self._tools), None)

    def taken(self, name: str) -> str | None:
        """The tool that has `name`, also as its wire name or by a seed's name; not what is merely like it."""
        if name in self._tools:
            return name
        if (canonical := self._wire.get(name)) is not None:
            return canonical
        return next((c for c in candidate_names(name) if c in self._tools), None)

    def get(self, name: str) -> LoadedTool | None:
        """The tool of any of its names, from the cache of the 256 last used; None where there is none."""
        canonical = self.resolve(name)
        return None if canonical is None else self._load(canonical)

    def _load_now(self, name: str) -> LoadedTool:
        tool = self._tools[name]
        if tool.schema is None:
            return LoadedTool(tool, schema_text(tool.args))
        return LoadedTool(tool, json.dumps(tool.schema, ensure_ascii=False))

    def specs(self) -> tuple[ToolSpec, ...]:
        """What models and the guard know of the tools, in the order they were added."""
        if self._specs is None:
            shared = {} if self.bottom is self else {spec.name: spec for spec in self.bottom.specs()}
            self._specs = tuple(
                shared[name] if shared and self.bottom._tools.get(name) is tool else self._spec(tool)
                for name, tool in self._tools.items()
            )
        return self._specs

    def spec(self, name: str) -> ToolSpec | None:
        """The spec of a tool by any of its names."""
        canonical = self.resolve(name)
        return next((s for s in self.specs() if s.name == canonical), None)

    def _spec(self, tool: Tool) -> ToolSpec:
        return ToolSpec(
            name=tool.name,
            description=tool.description.strip() or (tool.args.__doc__ or "").strip(),
            parameters=json.loads(self._load(tool.name).schema_json),
            effect=tool.effect,
            parallel=tool.parallel,
            resumes=tool.resumes,
            inner=tool.inner,
        )

    def get_prompt_stub(self) -> str:
        """All tools as text for prompts, one a line: `"name": {"type":"object",…}`, as models without tools of their
        own are sent those that they are offered (R1.39)."""
        return prompt_stub(self.specs())

    def parse(self, call: ToolCall) -> tuple[Tool, Args] | ToolResult:
        """The tool and its checked arguments, or the failing result that tells the model what is wrong."""
        loaded = self.get(call.tool)
        if loaded is None:
            near = ", ".join(map(wire_name, nearest_names(call.tool, self._tools)))
            hint = f"The nearest are {near}." if near else f"There are: {group_names(self.specs())}."
            return _invalid(f"There is no tool {call.tool[:200].replace('/', '__', 1)!r}. {hint}")
        tool = loaded.tool
        if call.malformed is not None:
            return _invalid(_explain_malformed(tool, call.malformed))
        if tool.schema is not None:
            return _parse_by_schema(tool, tool.schema, call.args)
        try:
            return tool, parse_arguments(tool.args, call.args)
        except ValidationError as error:
            return _invalid(explain_problems(wire_name(tool.name), tool.args, error))

    def read(self, call: ToolCall) -> ToolCall:
        """The call as it will be carried out: under its canonical name, its arguments in our words and as
        the values that the tool gets, so that whoever judges the call judges what is run. A call that cannot
        be carried out stays as it is."""
        from daiku.run.rules.calls.dialects import translate_dialect  # when used

        loaded = self.get(call.tool)
        if loaded is None or call.malformed is not None:
            return call
        tool = loaded.tool
        if tool.schema is not None:
            args = repair_args(tool.schema, call.args)
            return call if args == call.args else call.model_copy(update={"args": args})
        known = frozenset(tool.args.model_fields)
        meant = translate_dialect(tool.name, call.args, known)
        try:
            parsed = parse_arguments(tool.args, meant.args)
        except ValidationError:
            return call
        args = parsed.model_dump(mode="json", exclude_unset=True)
        notes = (*call.notes, *meant.notes)
        return call.model_copy(update={"tool": tool.name, "args": args, "notes": notes})

    def has_preview(self, name: str) -> bool:
        """Return True if the tool can show what a call would do before it is made."""
        loaded = self.get(name)
        return loaded is not None and loaded.tool.preview is not None

    async def preview(self, call: ToolCall, context: ToolContext) -> Preview | ToolResult | None:
        """What exactly the call would do, for an approval; None where the tool has nothing to show."""
        match self.parse(call):
            case ToolResult() as wrong:
                return wrong
            case tool, args:
                if tool.preview is None:
                    return None
                try:
                    return await tool.preview(args, context)
                except Exception as error:  # noqa: BLE001  # the tool-call catch place (see `call`)
                    return self._failure(tool, error)

    async def trial(self, call: ToolCall, context: ToolContext) -> ToolResult | Text:
        """Run the call where its writes are discarded: its result if it wrote nothing, else a reason to ask."""
        match self.parse(call):
            case ToolResult() as wrong:
                return wrong
            case tool, args:
                try:
                    return NO_TEXT if tool.trial is None else await tool.trial(args, context)
                except Exception as error:  # noqa: BLE001  # the tool-call catch place (see `call`)
                    return self._failure(tool, error)

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the call within its time. What a tool raises becomes a failing result with the class and the
        message, secrets taken out. Raises HandoffDepthExceeded, and what cancels."""
        match self.parse(call):
            case ToolResult() as wrong:
                return wrong
            case tool, args:
                try:
                    result = await self._run(tool, args, context)
                except HandoffDepthExceeded:
                    raise  # it ends the run: who always hands over would do so for ever
                except Exception as error:  # noqa: BLE001  # one of the three places that catch all
                    return self._failure(tool, error)
        if tool.bounds_itself or len(result.text) <= OUTPUT_LIMIT:
            return result
        return result.model_copy(update={"text": truncate_middle(result.text, how="Ask for a smaller part")})

    async def _run(self, tool: Tool, args: Args, context: ToolContext) -> ToolResult:
        if tool.timeout <= 0:
            return await tool.run(args, context)
        bound = asyncio.timeout(tool.timeout)
        try:
            async with bound:
                return await tool.run(args, context)
        except TimeoutError:
            if not bound.expired():
                raise
            return failed(f"{wire_name(tool.name)} did not end within {tool.timeout:g} s and was stopped.")

    def _failure(self, tool: Tool, error: Exception) -> ToolResult:
        if isinstance(error, DaikuError):
            text = " ".join(part for part in (error.failure.message, error.failure.hint) if part)
        else:
            text = f"{wire_name(tool.name)} failed: {type(error).__name__}: {error}"
        return failed(truncate_middle(self._redact(text), 4000))


def _invalid(text: str) -> ToolResult:
    return ToolResult(ok=False, text=text, data={"error": "ToolValidationError"})


def _explain_malformed(tool: Tool, text: str) -> str:
    try:
        value = json.loads(text)
    except RecursionError:
        why = "they are nested too deeply"
    except ValueError as error:
        why = str(error)
    else:
        why = f"they are a {type(value).__name__}, not an object"
    return (
        f"{wire_name(tool.name)} was not run: its arguments are not a JSON object ({why}).\n"
        f"Given: {truncate_middle(text, 300)}\nRight: {usage(tool.args) if tool.schema is None else usage_of(tool.schema)}"
    )


def _parse_by_schema(tool: Tool, schema: JsonObject, args: JsonObject) -> tuple[Tool, Args] | ToolResult:
    args = repair_args(schema, args)
    if problems := problems_of(schema, args):
        lines = "\n".join(f"- {problem}" for problem in problems)
        return _invalid(
            f"{wire_name(tool.name)} was not run: its arguments are wrong.\n{lines}\nRight: {usage_of(schema)}"
        )
    return tool, tool.args.model_validate(args)
