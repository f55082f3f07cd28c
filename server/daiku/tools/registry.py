"""The registry of tools: find one by any of its names, validate arguments, and run it with a timeout."""

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
from daiku.run.rules.calls.findtools import group_names, prompt_stub
from daiku.run.rules.calls.jsonargs import problems_of, repair_args, usage_of
from daiku.run.rules.calls.toolnames import (
    candidate_names,
    foreign_name,
    match_spelling,
    nearest_names,
    wire_name,
)
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.texts.text import NO_TEXT, Text
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure

CACHE_SIZE = 256
"""Loaded tools in the cache (R1.38)."""


class LoadedTool(NamedTuple):
    """A tool with its JSON Schema."""

    tool: Tool
    schema_json: str


def _keep_text(text: str) -> str:
    return text


class ToolRegistry:
    """All tools by name. Later tools replace earlier ones of the same name.

    `redact` removes secrets from the text of unexpected errors.
    """

    def __init__(self, tools: Iterable[Tool], *, redact: Callable[[str], str] = _keep_text) -> None:
        self._tools: MutableMapping[str, Tool] = {}
        self._wire: MutableMapping[str, str] = {}
        self._redact = redact
        self._derived: WeakKeyDictionary[object, ToolRegistry] = WeakKeyDictionary()
        self.bottom = self
        """The registry of the shared tools."""
        self._load = lru_cache(maxsize=CACHE_SIZE)(self._load_uncached)
        self._specs: tuple[ToolSpec, ...] | None = None
        self.add(tools)

    def add(self, tools: Iterable[Tool]) -> None:
        """Add tools, for example when an MCP server has answered."""
        for tool in tools:
            self._tools[tool.name] = tool
            self._wire[wire_name(tool.name)] = tool.name
        self._clear_cache()

    def remove(self, names: Iterable[str]) -> None:
        """Remove tools. Unknown names are ignored."""
        for name in names:
            self._tools.pop(name, None)
            self._wire.pop(wire_name(name), None)
        self._clear_cache()

    def with_own(self, owner: object, tools: Callable[[], Iterable[Tool]]) -> ToolRegistry:
        """Return a registry of the owner's tools over the shared ones; always the same for one owner."""
        registry = self.bottom._derived.get(owner)
        if registry is None:
            registry = self.bottom._derived[owner] = ToolRegistry((), redact=self._redact)
            registry.bottom = self.bottom
            registry._tools = ChainMap({}, self.bottom._tools)
            registry._wire = ChainMap({}, self.bottom._wire)
            registry.add(tools())
        return registry

    def _clear_cache(self) -> None:
        self._load.cache_clear()
        self._specs = None
        for derived in self._derived.values():
            derived._clear_cache()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def resolve(self, name: str) -> str | None:
        """Return the canonical name for `name`; None if there is none.

        Accepts the name itself, its wire name, `a.b`, `a_b`, a seed's name, and the name of such a tool in
        another program.
        """
        canonical = self.taken(name) or self._wire.get(wire_name(name)) or match_spelling(name, self._tools)
        return canonical or next((each for each in (foreign_name(name),) if each in self._tools), None)

    def taken(self, name: str) -> str | None:
        """Return the tool that has exactly `name`, also as its wire name or a seed's name; not a similar one."""
        if name in self._tools:
            return name
        if (canonical := self._wire.get(name)) is not None:
            return canonical
        return next((c for c in candidate_names(name) if c in self._tools), None)

    def get(self, name: str) -> LoadedTool | None:
        """Return the tool of any of its names, from the cache of the 256 last used; None if there is none."""
        canonical = self.resolve(name)
        return None if canonical is None else self._load(canonical)

    def _load_uncached(self, name: str) -> LoadedTool:
        tool = self._tools[name]
        if tool.schema is None:
            return LoadedTool(tool, schema_text(tool.args))
        return LoadedTool(tool, json.dumps(tool.schema, ensure_ascii=False))

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specs for models and the guard, in the order of addition."""
        if self._specs is None:
            shared = {} if self.bottom is self else {spec.name: spec for spec in self.bottom.specs()}
            self._specs = tuple(
                shared[name] if shared and self.bottom._tools.get(name) is tool else self._build_spec(tool)
                for name, tool in self._tools.items()
            )
        return self._specs

    def spec(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool by any of its names."""
        canonical = self.resolve(name)
        return next((s for s in self.specs() if s.name == canonical), None)

    def _build_spec(self, tool: Tool) -> ToolSpec:
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
        """Format all tools for prompts, one per line: `"name": {"type":"object",…}`.

        Models without native tool calls get their offered tools in this form (R1.39).
        """
        return prompt_stub(self.specs())

    def parse(self, call: ToolCall) -> tuple[Tool, Args] | ToolResult:
        """Return the tool and its validated arguments, or the failing result for the model."""
        loaded = self.get(call.tool)
        if loaded is None:
            suggestions = ", ".join(map(wire_name, nearest_names(call.tool, self._tools)))
            hint = (
                f"The nearest are {suggestions}."
                if suggestions
                else f"There are: {group_names(self.specs())}."
            )
            return _build_invalid(f"There is no tool {call.tool[:200].replace('/', '__', 1)!r}. {hint}")
        tool = loaded.tool
        if call.malformed is not None:
            return _build_invalid(_explain_malformed(tool, call.malformed))
        if tool.schema is not None:
            return _parse_by_schema(tool, tool.schema, call.args)
        try:
            return tool, parse_arguments(tool.args, call.args)
        except ValidationError as error:
            return _build_invalid(explain_problems(wire_name(tool.name), tool.args, error))

    def read(self, call: ToolCall) -> ToolCall:
        """Normalize the call to what will run: canonical name, our argument names, parsed values.

        So the guard judges what actually runs. An invalid call is returned unchanged.
        """
        from daiku.run.rules.calls.dialects import translate_dialect  # when used

        loaded = self.get(call.tool)
        if loaded is None or call.malformed is not None:
            return call
        tool = loaded.tool
        if tool.schema is not None:
            args = repair_args(tool.schema, call.args)
            return call if args == call.args else call.model_copy(update={"args": args})
        argument_names = frozenset(tool.args.model_fields)
        translated = translate_dialect(tool.name, call.args, argument_names)
        try:
            parsed = parse_arguments(tool.args, translated.args)
        except ValidationError:
            return call
        args = parsed.model_dump(mode="json", exclude_unset=True)
        notes = (*call.notes, *translated.notes)
        return call.model_copy(update={"tool": tool.name, "args": args, "notes": notes})

    def has_preview(self, name: str) -> bool:
        """Return True if the tool can show the effect of a call before it runs."""
        loaded = self.get(name)
        return loaded is not None and loaded.tool.preview is not None

    async def preview(self, call: ToolCall, context: ToolContext) -> Preview | ToolResult | None:
        """Return the exact effect of the call for an approval; None if the tool has no preview."""
        match self.parse(call):
            case ToolResult() as failure:
                return failure
            case tool, args:
                if tool.preview is None:
                    return None
                try:
                    return await tool.preview(args, context)
                except Exception as error:  # noqa: BLE001  # a tool may raise anything (see `call`)
                    return self._build_failure(tool, error)

    async def trial(self, call: ToolCall, context: ToolContext) -> ToolResult | Text:
        """Run the call with its writes discarded.

        Returns the result if nothing was written, else a reason to ask.
        """
        match self.parse(call):
            case ToolResult() as failure:
                return failure
            case tool, args:
                try:
                    return NO_TEXT if tool.trial is None else await tool.trial(args, context)
                except Exception as error:  # noqa: BLE001  # a tool may raise anything (see `call`)
                    return self._build_failure(tool, error)

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the call within its timeout. An exception becomes a failing result without secrets.

        Raises HandoffDepthExceeded, and cancellations.
        """
        match self.parse(call):
            case ToolResult() as failure:
                return failure
            case tool, args:
                try:
                    result = await self._run(tool, args, context)
                except HandoffDepthExceeded:
                    raise  # it ends the run: otherwise handoffs could nest forever
                except Exception as error:  # noqa: BLE001  # a tool may raise anything
                    return self._build_failure(tool, error)
        if tool.bounds_itself or len(result.text) <= OUTPUT_LIMIT:
            return result
        return result.model_copy(update={"text": truncate_middle(result.text, how="Ask for a smaller part")})

    async def _run(self, tool: Tool, args: Args, context: ToolContext) -> ToolResult:
        if tool.timeout <= 0:
            return await tool.run(args, context)
        deadline = asyncio.timeout(tool.timeout)
        try:
            async with deadline:
                return await tool.run(args, context)
        except TimeoutError:
            if not deadline.expired():
                raise
            return build_failure(
                f"{wire_name(tool.name)} did not end within {tool.timeout:g} s and was stopped."
            )

    def _build_failure(self, tool: Tool, error: Exception) -> ToolResult:
        if isinstance(error, DaikuError):
            text = " ".join(part for part in (error.failure.message, error.failure.hint) if part)
        else:
            text = f"{wire_name(tool.name)} failed: {type(error).__name__}: {error}"
        return build_failure(truncate_middle(self._redact(text), 4000))


def _build_invalid(text: str) -> ToolResult:
    return ToolResult(ok=False, text=text, data={"error": "ToolValidationError"})


def _explain_malformed(tool: Tool, text: str) -> str:
    try:
        value = json.loads(text)
    except RecursionError:
        reason = "they are nested too deeply"
    except ValueError as error:
        reason = str(error)
    else:
        reason = f"they are a {type(value).__name__}, not an object"
    return (
        f"{wire_name(tool.name)} was not run: its arguments are not a JSON object ({reason}).\n"
        f"Given: {truncate_middle(text, 300)}\nRight: {usage(tool.args) if tool.schema is None else usage_of(tool.schema)}"
    )


def _parse_by_schema(tool: Tool, schema: JsonObject, args: JsonObject) -> tuple[Tool, Args] | ToolResult:
    args = repair_args(schema, args)
    if problems := problems_of(schema, args):
        lines = "\n".join(f"- {problem}" for problem in problems)
        return _build_invalid(
            f"{wire_name(tool.name)} was not run: its arguments are wrong.\n{lines}\nRight: {usage_of(schema)}"
        )
    return tool, tool.args.model_validate(args)
