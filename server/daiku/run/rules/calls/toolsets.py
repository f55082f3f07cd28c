"""Which tools a model is sent with their schemas, and which it finds by tools/find and calls by tools/call."""

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
"""What nearly every request needs; of files/edit and files/patch the one that the model writes best."""
FOR_LARGE = frozenset({"search/map", "agent/explore"})
"""Those of the CORE that serve a large project; in a small one a look at its files tells as much."""
SMALL = ("files/read", "files/edit", "files/patch", "files/write", "search/text", "shell/run")
SMALL_WINDOW = 16_000
"""Tokens of context below which a model is sent only the SMALL tools."""
MOST_OF_SERVERS = 20
"""Tools of MCP servers that are sent; where there are more, all of them are found by tools/find."""
_SHOWN_NAMES = 20
"""Names of one group that the description of tools/find lists."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of a session: `offered` are sent with every request, `deferred` can be found and called."""

    offered: tuple[ToolSpec, ...]
    deferred: tuple[ToolSpec, ...] = ()


def choose_tools(
    specs: Sequence[ToolSpec], *, window: int = 0, edits: EditForm = "search_replace", large: bool = True
) -> ToolSet:
    """Divide `specs` for a model with `window` tokens of context (0: unknown) and a `large` or small project.
    Within a session it changes with MCP servers, and once if a project grows large. Order is kept."""
    small = 0 < window < SMALL_WINDOW
    other = "files/patch" if edits == "search_replace" else "files/edit"
    wanted = {name for name in (SMALL if small else CORE) if name != other} - (set() if large else FOR_LARGE)
    of_servers = [spec.name for spec in specs if spec.effect == "mcp"]
    if small and of_servers:  # a person configured them: they have to be in reach
        wanted |= {FIND, CALL}
    elif len(of_servers) <= MOST_OF_SERVERS:
        wanted |= set(of_servers)
    deferred = tuple(spec for spec in specs if spec.name not in wanted and spec.name not in (FIND, CALL))
    if not deferred:
        wanted -= {FIND, CALL}
    offered = (_with_names(spec, deferred) for spec in specs if spec.name in wanted)
    return ToolSet(tuple(offered), deferred)


def _with_names(spec: ToolSpec, deferred: Sequence[ToolSpec]) -> ToolSpec:
    if spec.name != FIND:
        return spec
    told = f"{spec.description} There are {_groups(deferred)}."
    return spec.model_copy(update={"description": told})


def _groups(specs: Sequence[ToolSpec]) -> str:
    """Which tools there are in the fewest words: `git__*`, and a tool alone in its group by its name."""
    names = [wire_name(spec.name) for spec in specs]
    of = {name: name.partition("__")[0] for name in names}
    sizes = Counter(of.values())
    return ", ".join(dict.fromkeys(f"{of[n]}__*" if sizes[of[n]] > 1 else n for n in names))


def group_names(specs: Iterable[ToolSpec]) -> str:
    """The names by group, in few words: `git__ status, diff, log; plan__ propose, get`."""
    groups: dict[str, list[str]] = {}
    for spec in specs:
        group, _, own = wire_name(spec.name).partition("__")
        groups.setdefault(group, []).append(own)
    return "; ".join(f"{group}__ {_some(names)}" for group, names in groups.items())


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def prompt_stub(tools: Iterable[ToolSpec]) -> str:
    """Return one line for each tool: `"name": {"type":"object",…}`, its schema and description (R1.39)."""
    return ",\n".join(f"{_json(wire_name(tool.name))}: {_json(_described(tool))}" for tool in tools)


def _described(tool: ToolSpec) -> JsonObject:
    """The description stands behind the type: first what it is, then what it does, then its arguments."""
    head: JsonObject = {"type": "object", "description": " ".join(tool.description.split())}
    return head | {key: value for key, value in tool.parameters.items() if key not in head}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
