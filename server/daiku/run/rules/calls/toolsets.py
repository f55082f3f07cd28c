"""Choice of the tools that a model is sent; the others are found by tools/find and called by tools/call."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.tools import EditForm, ToolSpec
from daiku.run.rules.calls.toolnames import wire_name

FIND, CALL = "tools/find", "tools/call"
CORE = (
    "files/read", "files/list", "files/edit", "files/patch", "files/write", "search/text", "search/map",
    "shell/run", "todo/write", "agent/explore", "user/ask", FIND, CALL,
)  # fmt: skip
"""Tools that nearly every request needs; of files/edit and files/patch only the model's preferred one."""
FOR_LARGE = frozenset({"search/map", "agent/explore"})
"""CORE tools for large projects only."""
SMALL = ("files/read", "files/edit", "files/patch", "files/write", "search/text", "shell/run")
SMALL_WINDOW = 16_000
"""Tokens of context below which a model is sent only the SMALL tools."""
MOST_OF_SERVERS = 20
"""MCP tools that are sent, at most; if there are more, all are deferred."""
_SHOWN_NAMES = 20
"""Names of one group in the description of tools/find, at most."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools of a session: `offered` ones are sent with every request, `deferred` ones can be searched."""

    offered: tuple[ToolSpec, ...]
    deferred: tuple[ToolSpec, ...] = ()


def choose_tools(
    specs: Sequence[ToolSpec], *, window: int = 0, edits: EditForm = "search_replace", large: bool = True
) -> ToolSet:
    """Divide `specs` for a model with `window` tokens of context (0: unknown) and a `large` or small project.

    Order is kept. The result changes only with MCP servers, and once when a project becomes large.
    """
    is_small = 0 < window < SMALL_WINDOW
    unused_edit_tool = "files/patch" if edits == "search_replace" else "files/edit"
    offered_names = {name for name in (SMALL if is_small else CORE) if name != unused_edit_tool} - (
        set() if large else FOR_LARGE
    )
    server_tools = [spec.name for spec in specs if spec.effect == "mcp"]
    if is_small and server_tools:  # the user configured them, so they must be callable
        offered_names |= {FIND, CALL}
    elif len(server_tools) <= MOST_OF_SERVERS:
        offered_names |= set(server_tools)
    deferred = tuple(
        spec for spec in specs if spec.name not in offered_names and spec.name not in (FIND, CALL)
    )
    if not deferred:
        offered_names -= {FIND, CALL}
    offered = (_add_groups(spec, deferred) for spec in specs if spec.name in offered_names)
    return ToolSet(tuple(offered), deferred)


def _add_groups(spec: ToolSpec, deferred: Sequence[ToolSpec]) -> ToolSpec:
    if spec.name != FIND:
        return spec
    description = f"{spec.description} There are {_list_groups(deferred)}."
    return spec.model_copy(update={"description": description})


def _list_groups(specs: Sequence[ToolSpec]) -> str:
    """Return the tools as briefly as possible: `git__*`, or the name of a tool that is alone in its group."""
    names = [wire_name(spec.name) for spec in specs]
    group_by_name = {name: name.partition("__")[0] for name in names}
    sizes = Counter(group_by_name.values())
    return ", ".join(
        dict.fromkeys(f"{group_by_name[n]}__*" if sizes[group_by_name[n]] > 1 else n for n in names)
    )


def group_names(specs: Iterable[ToolSpec]) -> str:
    """Return the names by group: `git__ status, diff, log; plan__ propose, get`."""
    groups: dict[str, list[str]] = {}
    for spec in specs:
        group, _, short_name = wire_name(spec.name).partition("__")
        groups.setdefault(group, []).append(short_name)
    return "; ".join(f"{group}__ {_join_names(names)}" for group, names in groups.items())


def _join_names(names: list[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def prompt_stub(tools: Iterable[ToolSpec]) -> str:
    """Return one line for each tool: `"name": {"type":"object",…}` with its schema and description."""
    return ",\n".join(
        f"{_to_json(wire_name(tool.name))}: {_to_json(_schema_with_description(tool))}" for tool in tools
    )


def _schema_with_description(tool: ToolSpec) -> JsonObject:
    """Return the schema with the description right after the type."""
    head: JsonObject = {"type": "object", "description": " ".join(tool.description.split())}
    return head | {key: value for key, value in tool.parameters.items() if key not in head}


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
