"""The small part of YAML in which the composition is written, read; what is not of it is refused, not guessed."""

from __future__ import annotations

import json
import re

Value = str | int | bool | None | list["Value"] | dict[str, "Value"]
_PLAIN = re.compile(r"[A-Za-z./][\w./:=-]*|\d+[a-z]+")
_OTHER = frozenset({"yes", "no", "on", "off", "null", "y", "n"})
"""Words that YAML readers take for something else, or do not agree about."""


def read_yaml(text: str) -> Value:
    """Mappings, lists with `-`, flow lists and quoted texts as JSON has them, plain words. Raises ValueError."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    found, end = _block(lines, 0, 0)
    if end != len(lines):
        raise ValueError(f"not understood: {lines[end]}")
    return found


def _block(lines: list[str], at: int, depth: int) -> tuple[Value, int]:
    """What begins at line `at`, `depth` spaces in; None where nothing does."""
    items: list[Value] = []
    fields: dict[str, Value] = {}
    while at < len(lines) and len(lines[at]) - len(lines[at].lstrip(" ")) == depth:
        line = lines[at].strip()
        at += 1
        if line.startswith("- "):
            items.append(_scalar(line.removeprefix("- ")))
            continue
        key, colon, rest = line.partition(":")
        if not colon or not re.fullmatch(r"\w+", key) or key in fields or (rest and rest[0] != " "):
            raise ValueError(f"not understood: {line}")
        if rest:
            fields[key] = _scalar(rest.strip())
        else:
            deeper = len(lines[at]) - len(lines[at].lstrip(" ")) if at < len(lines) else 0
            fields[key], at = _block(lines, at, deeper) if deeper > depth else (None, at)
    if items and fields:
        raise ValueError(f"a list and a mapping in one: {items}")
    return (items or fields or None), at


def _scalar(said: str) -> Value:
    if said[0] in '"[':
        found: Value = json.loads(said)
        return found
    if said in ("true", "false"):
        return said == "true"
    if re.fullmatch(r"0|[1-9]\d*", said):
        return int(said)
    if _PLAIN.fullmatch(said) is None or said.casefold() in _OTHER or said.endswith(":"):
        raise ValueError(f"not understood: {said}")
    return said
