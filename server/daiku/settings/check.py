"""One layer of settings checked: known names, right types, problems in plain words."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.alias_generators import to_snake
from pydantic_core import ErrorDetails

from daiku.domain.base import JsonObject
from daiku.settings.config import Config
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text
from daiku.trace.telemetry.endpoint import endpoint_problem

Key = tuple[str, ...]
SECRET = lazy(r"api_key$|token$|headers|\benv\b|database_url|password|secret")
PATTERNS = ("guardrails.regex_blocks", "router.rules")
"""Lists of regular expressions, or of lists that begin with one."""
URLS = lazy(r"\.(base_url|api_url|url)$")


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the settings table behind a field's type, None if it is a plain value."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def field_at(key: Key) -> Any:
    """Return the type of the setting at `key`, None if there is none."""
    here: Any = Config
    for part in key:
        table = model_of(here)
        if table is None or part not in table.model_fields:
            return None
        here = table.model_fields[part].annotation
    return here


def known_keys(table: type[BaseModel] = Config, at: Key = ()) -> Iterator[Key]:
    """Every setting that is a value, as a path."""
    for name, info in table.model_fields.items():
        inner = model_of(info.annotation)
        if inner is None:
            yield (*at, name)
        else:
            yield from known_keys(inner, (*at, name))


def leaves(data: JsonObject, at: Key = ()) -> Iterator[tuple[Key, JsonValue]]:
    """Yield the values of a layer with their paths; a list or a free table counts as one value."""
    for name, value in data.items():
        if isinstance(value, dict) and model_of(field_at((*at, name))) is not None:
            yield from leaves(value, (*at, name))
        else:
            yield (*at, name), value


def normalize_keys(data: JsonObject, problems: list[Text], where: str, at: Key = ()) -> JsonObject:
    """Return the layer with every key in snake_case; add unknown keys to `problems` with the nearest known one."""
    table = model_of(field_at(at)) if at else Config
    assert table is not None
    done: JsonObject = {}
    for raw, value in data.items():
        name = raw if raw in table.model_fields else to_snake(raw)
        if name not in table.model_fields:
            problems.append(_unknown((*at, raw), where))
            continue
        inner = model_of(table.model_fields[name].annotation)
        if inner is not None and isinstance(value, dict):
            done[name] = normalize_keys(value, problems, where, (*at, name))
        else:
            done[name] = value
    return done


def check_values(data: JsonObject, problems: list[Text], where: str) -> None:
    """Every value that does not fit goes to `problems`: where, which key, what would be right."""
    try:
        Config.model_validate(data)
    except ValidationError as wrong:
        problems.extend(dict.fromkeys(_describe(error, where) for error in wrong.errors(include_url=False)))
    for key, value in leaves(data):
        name = dotted(key)
        if name == "trace.otlp_endpoint" and isinstance(value, str) and value:
            if problem := endpoint_problem(value):
                problems.append(text("settings.problem", where=where, name=name, problem=problem))
        elif isinstance(value, str) and value and URLS.search(name) and not _is_url(value):
            problems.append(_must(where, name, text("settings.address"), value))
        if name in PATTERNS and isinstance(value, list):
            first = (each[0] if isinstance(each, list) and each else each for each in value)
            problems.extend(
                text("settings.regex", where=where, name=name, pattern=repr(pattern), what=reason)
                for pattern in first
                if isinstance(pattern, str) and (reason := _regex_problem(pattern))
            )


def dotted(key: tuple[str | int, ...]) -> str:
    """`llm.openai.base_url`; list places as `mcp_servers[0].url`."""
    name = ""
    for part in key:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def display_value(name: str, value: object) -> Text:
    """Return a value as a message shows it: short, never a secret."""
    if SECRET.search(name):
        return text("settings.hidden")
    shown = repr(value) if not isinstance(value, bool) else str(value).lower()
    return Text(shown if len(shown) <= 60 else shown[:57] + "…")


def unknown_setting(where: str, name: str, near: str) -> Text:
    """Return the message for an unknown setting; `near` is the closest known name, or empty."""
    if not near:
        return text("settings.unknown", where=where, name=name)
    return text("settings.unknown_near", where=where, name=name, near=near)


def nearest_key(key: Key) -> Key | None:
    """Return the setting that a wrong name may mean: siblings first, then that name elsewhere, then what looks alike."""
    import difflib  # when used

    every = list(known_keys())
    names = {dotted(k): k for k in every} | {k[-1]: k for k in reversed(every)}
    alike = (
        [(*key[:-1], near) for near in difflib.get_close_matches(key[-1], _siblings(key), 1)]
        or [k for k in every if k[-1] == key[-1]]
        or [names[near] for near in difflib.get_close_matches(key[-1], names, 1)]
    )
    return alike[0] if alike else None


def _siblings(key: tuple[str | int, ...]) -> list[str]:
    table = _inner_table(key[:-1])
    return list(table.model_fields) if table else []


def _unknown(key: Key, where: str) -> Text:
    if near := nearest_key(key):
        return unknown_setting(where, dotted(key), dotted(near))
    return text("settings.unknown_here", where=where, name=dotted(key), names=", ".join(_siblings(key)))


_RIGHT = {
    "int": text("settings.whole_number"),
    "float": text("settings.number"),
    "bool": text("settings.true_or_false"),
    "string": text("settings.string"),
    "tuple": text("settings.list"),
    "list": text("settings.list"),
    "dict": text("settings.table"),
    "model": text("settings.table"),
    "finite": text("settings.finite_number"),
}


def _describe(error: ErrorDetails, where: str) -> Text:
    loc = tuple(to_snake(p) if isinstance(p, str) and p.isidentifier() else p for p in error["loc"])
    name, kind, ctx = dotted(loc), error["type"], error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            import difflib  # when used

            near = difflib.get_close_matches(str(loc[-1]), _siblings(loc), 1)
            return unknown_setting(where, name, near[0] if near else "")
        case "literal_error":
            right = text("settings.one_of", names=ctx.get("expected", ""))
        case "greater_than_equal":
            right = text("settings.at_least", low=ctx.get("ge", ""))
        case "less_than_equal":
            right = text("settings.at_most", high=ctx.get("le", ""))
        case _:
            right = _RIGHT.get(kind.partition("_")[0]) or Text(error["msg"])
    return _must(where, name, right, error.get("input"))


def _must(where: str, name: str, right: Text, value: object) -> Text:
    return text("settings.must", where=where, name=name, right=right, value=display_value(name, value))


def _inner_table(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """Return the table at a place inside lists and free tables, which `field_at` does not reach."""
    here: Any = Config
    for part in loc:
        table = model_of(here)
        if table is not None and isinstance(part, str) and part in table.model_fields:
            here = table.model_fields[part].annotation
        elif get_origin(here) in (tuple, dict, types.UnionType):
            here = next((a for a in reversed(get_args(here)) if model_of(a)), None)
        else:
            return None
    return model_of(here)


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _regex_problem(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as wrong:
        return str(wrong)
    return ""
