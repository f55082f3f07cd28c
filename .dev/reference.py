"""Generated parts of the documentation: the settings, the commands, the tools, and the wire protocol as Markdown."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from manifest import schema_of
from pydantic import BaseModel
from tables import command_tree

from daiku.domain.config import MCPServerSettings, Price
from daiku.domain.events import EVENTS
from daiku.fronts.http.routes import ROUTES
from daiku.fronts.lsp.requests.commands import COMMANDS
from daiku.fronts.lsp.requests.methods import METHODS
from daiku.models.table import PROVIDERS
from daiku.settings import every_key
from daiku.settings.config import AgentsSettings
from daiku.tools.table import build_builtin_tools

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTIONS = ROOT / "docs" / "reference" / "settings.toml"
_PROVIDER = re.compile(rf"^llm\.({'|'.join(PROVIDERS)})\.")
_AGENT = re.compile(r"^agents\.\w+\.")
ITEMS: dict[str, type[BaseModel]] = {"mcp_servers": MCPServerSettings, "llm.PROVIDER.price": Price}
"""Settings whose value is a list or a table of tables, with the type of one."""


def descriptions() -> dict[str, str]:
    """Return the description of each setting, by its pattern."""
    return tomllib.loads(DESCRIPTIONS.read_text(encoding="utf-8"))


def pattern_of(key: str) -> str:
    """Return the name under which the reference lists a setting: those of providers and agents share one."""
    return _AGENT.sub("agents.AGENT.", _PROVIDER.sub("llm.PROVIDER.", key))


def item_keys() -> Iterator[str]:
    """Yield the fields of settings that are lists or tables of tables."""
    for name, model in ITEMS.items():
        for field, info in model.model_fields.items():
            inner = info.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from (f"{name}.{field}.{each}" for each in inner.model_fields)
            else:
                yield f"{name}.{field}"


def settings() -> str:
    """Return the settings reference: one table for each section of the file."""
    sections: dict[str, list[str]] = {}
    first = {pattern_of(key): key for key in reversed(every_key())}
    for pattern in dict.fromkeys(map(pattern_of, every_key())):
        sections.setdefault(pattern.rpartition(".")[0] or pattern, []).append(pattern)
    for key in item_keys():
        sections.setdefault(key.rpartition(".")[0], []).append(key)
    said = descriptions()
    return "\n\n".join(
        _section(name, [(key, first.get(key, ""), said[key]) for key in keys])
        for name, keys in sections.items()
    )


def _section(name: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f"| `{key}` | {_kind(full)} | {_default(full)} | {text} |" for key, full, text in rows]
    head = f"## `[{name}]`" if rows[0][1] != name else f"## `{name}`"
    return "\n".join(
        [head, "", *_about(name), "| setting | type | default | description |", "|---|---|---|---|", *lines]
    )


def _about(name: str) -> list[str]:
    match name:
        case "llm.PROVIDER":
            return [f"`PROVIDER` is one of {_listed(PROVIDERS)}.", ""]
        case "agents.AGENT":
            return [f"`AGENT` is one of {_listed(AgentsSettings.model_fields)}.", ""]
        case _:
            return []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _kind(key: str) -> str:
    """Return the type of a setting with its bounds, empty for a field of an item."""
    if not key:
        return ""
    schema = schema_of(key)
    if values := schema.get("enum"):
        return _listed(f'"{value}"' for value in values)
    names = {"string": "text", "array": "list", "object": "table", "number": "number", "integer": "integer"}
    bounds = [
        f"{word} {schema[bound]:g}"
        for bound, word in (("minimum", "at least"), ("maximum", "at most"))
        if bound in schema
    ]
    return ", ".join([names.get(schema.get("type", ""), "true or false"), *bounds])


def _default(key: str) -> str:
    if not key:
        return ""
    if "PROVIDER" in pattern_of(key) and key.endswith("api_key_env"):
        return "per provider"
    value = schema_of(key).get("default")
    return f"`{_toml(value)}`" if value not in ("", [], {}, None) else "empty"


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case float() if value == int(value):
            return f"{value:.1f}"
        case _:
            return str(value)


def commands() -> str:
    """Return the CLI reference: usage, help, and options of every command and subcommand."""
    return "\n\n".join(_command(path, command) for path, command in command_tree())


def _command(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(("daiku", *path)))
    usage = " ".join([context.info_name or "", *command.collect_usage_pieces(context)])
    head = f"{'#' * (len(path) + 1)} `daiku {' '.join(path)}`"
    options = [
        f"| {_listed([*each.opts, *each.secondary_opts])} | {_cell(_value(each, context))} | {_cell(each.help or '')} |"
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]
    table = ["", "| option | value | description |", "|---|---|---|", *options] if options else []
    return "\n".join([head, "", _cell(str(command.help or "")), "", "```text", usage, "```", *table])


def _value(option: click.Option, context: click.Context) -> str:
    return "" if option.is_flag else f"`{option.make_metavar(context)}`"


def _cell(text: str) -> str:
    """Return text for a table cell: no column marks and no HTML."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def tools() -> str:
    """Return the table of the built-in tools with their arguments."""
    rows: list[str] = []
    for tool in build_builtin_tools():
        schema: dict[str, Any] = tool.args.model_json_schema(by_alias=False)
        required = schema.get("required", [])
        args = (f"`{name}{'' if name in required else '?'}`" for name in schema.get("properties", {}))
        rows.append(f"| `{tool.name}` | {' '.join(args)} | {_cell(tool.description).partition('. ')[0]} |")
    return "\n".join(["| tool | arguments | description |", "|---|---|---|", *rows])


def methods() -> str:
    """Return the table of the custom methods with the names of their types."""
    rows = [
        f"| `{name}` | `{method.params.__name__}` | `{method.result.__name__ if method.result else 'null'}` |"
        for name, method in METHODS.items()
    ]
    return "\n".join(["| method | params | result |", "|---|---|---|", *rows])


def events() -> str:
    """Return the table of the event types with their fields."""
    rows = [
        f"| `{name}` | {_listed(info.serialization_alias or field for field, info in event.model_fields.items())} |"
        for name, event in EVENTS.items()
    ]
    return "\n".join(["| `type` | fields of `data` |", "|---|---|", *rows])


def executed() -> str:
    """Return the commands of `workspace/executeCommand`."""
    return f"{_listed(COMMANDS)}."


def routes() -> str:
    """Return the table of the HTTP endpoints."""
    rows = [f"| `{method}` | `{path}` |" for method, path, _ in ROUTES]
    return "\n".join(["| method | path |", "|---|---|", *rows])


def types() -> str:
    """Return the wire contract as TypeScript."""
    text = (ROOT / "extension" / "src" / "contract.gen.ts").read_text(encoding="utf-8")
    return f"```typescript\n{text}```"


INCLUDED = {
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "architecture": "server/README.md",
    "decisions": "server/DECISIONS.md",
    "deploy": "server/ship/README.md",
}
"""Files of the repository that are pages of the site, by the name of the part."""
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]*)\)")


def _included(name: str) -> str:
    """Return a file of the repository without its title. Its links to other files become text."""
    text = (ROOT / INCLUDED[name]).read_text(encoding="utf-8")
    return _LINK.sub(r"\1", text.partition("\n")[2])


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "commands": commands,
    "tools": tools,
    "methods": methods,
    "events": events,
    "types": types,
    "executed": executed,
    "routes": routes,
}
_MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def fill(page: str) -> str:
    """Return a page with its generated parts. Raises KeyError for a part that does not exist."""
    return _MARK.sub(lambda mark: _included(mark[1]) if mark[1] in INCLUDED else PARTS[mark[1]](), page)


_LITERAL = re.compile(r"`+([^`]+)`+")
_IDS = re.compile(r" ?\((?:PROTOCOL \d+|(?:[A-Z]\w*\d*\.\d+[–, ]*)+)\)")
"""Ids of requirements in a docstring, which only the developers know."""


def to_rst(docstring: str) -> str:
    """Convert a docstring with Markdown literals to reStructuredText."""
    parts = _LITERAL.split(_IDS.sub("", docstring))
    parts[::2] = [re.sub(r"([*|])", r"\\\1", text) for text in parts[::2]]
    parts[1::2] = [f"``{literal}``\\ " for literal in parts[1::2]]
    return "".join(parts)
