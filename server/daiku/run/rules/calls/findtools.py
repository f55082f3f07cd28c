"""Find a tool by words, and read the call that a model makes of a tool that it found."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.run.rules.calls.toolnames import match_spelling, wire_name
from daiku.run.rules.calls.toolsets import CALL, group_names
from daiku.texts.rules.patterns import lazy

MOST_FOUND = 8
MOST_CHARACTERS = 5000
"""Of one answer: about 1,250 tokens. What is behind that is named, and found by its name."""
HOW = f'Call one with {wire_name(CALL)} {{"tool": "NAME", "args": {{…}}}}.'
_ARGS = ("args", "arguments", "parameters", "params", "input", "tool_input", "kwargs")
_NAMES = ("tool", "name", "tool_name")
_NESTED = 4
_ENDINGS = lazy(r"(?<=\w{3})(?:ing|es|ed|s)$")


def found_tools(query: str, deferred: Sequence[ToolSpec], offered: Sequence[ToolSpec] = ()) -> str:
    """Describe the tools that match `query`; without a query or a match, list the groups of tools."""
    if not deferred:
        return "There are no more tools than those that you were given."
    if not (words := _words(query)):
        return f"Tools by group: {group_names(deferred)}. Search by a word or a name to get their arguments."
    named = match_spelling(query.strip(), [spec.name for spec in offered])
    found = _ranked(query, words, deferred) if named is None else []
    if found:
        return _described(query, found, len(deferred))
    given = _ranked(query, words, offered)[:3]
    yours = (
        f" You have been given {', '.join(wire_name(s.name) for s in given)}: call them directly."
        if given
        else ""
    )
    return f"No further tool matches {query!r}.{yours} Further tools by group: {group_names(deferred)}."


def _ranked(query: str, words: Sequence[str], specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Those that match, the best first; a tool's own name alone brings only that one."""
    exact = match_spelling(query.strip(), [spec.name for spec in specs])
    if exact is not None:
        return [spec for spec in specs if spec.name == exact]
    scored = [(sum(_score(word, spec) for word in words), at) for at, spec in enumerate(specs)]
    least = max(1, max((score for score, _ in scored), default=0) / 3)  # the rest only shares a common word
    return [specs[at] for score, at in sorted(scored, key=lambda each: (-each[0], each[1])) if score >= least]


def _score(word: str, spec: ToolSpec) -> int:
    properties = spec.parameters.get("properties")
    keys = " ".join(properties) if isinstance(properties, dict) else ""
    places = ((spec.name, 6), (spec.description, 2), (keys, 1))
    return sum(weight for text, weight in places if any(known.startswith(word) for known in _words(text)))


def _words(text: str) -> list[str]:
    return [_ENDINGS.sub("", word) for word in re.findall(r"[^\W_]+", text.lower())]


def _described(query: str, found: Sequence[ToolSpec], of: int) -> str:
    lines: list[str] = []
    size = 0
    for spec in found[:MOST_FOUND]:
        schema = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
        told = f"{wire_name(spec.name)}: {' '.join(spec.description.split())}\n{schema}"
        size += len(told)
        if lines and size > MOST_CHARACTERS:
            break
        lines.append(told[:MOST_CHARACTERS])
    rest = [wire_name(spec.name) for spec in found[len(lines) :][:20]]
    more = f"\n\nAlso: {', '.join(rest)}; find one by its name." if rest else ""
    head = f"{len(found)} of {of} further tools match {query!r}. {HOW}"
    return "\n\n".join([head, *lines]) + more


def unwrap_call(call: ToolCall) -> ToolCall:
    """Return the call inside a call of tools/call, unchecked; any other call as it is."""
    for _ in range(_NESTED):
        if match_spelling(call.tool, (CALL,)) is None or call.malformed is not None:
            return call
        inner = _inner(call)
        if inner is None:
            return call
        call = inner
    return call


def _inner(call: ToolCall) -> ToolCall | None:
    name_key = next((key for key in _NAMES if isinstance(call.args.get(key), str) and call.args[key]), None)
    if name_key is None:
        return None
    args_key = next((key for key in _ARGS if key in call.args), None)
    rest: JsonObject = {key: value for key, value in call.args.items() if key != name_key}
    given: JsonValue = rest if args_key is None else call.args[args_key]
    malformed: str | None = None
    if isinstance(given, str):
        given, malformed = _read_json(given)
    if not isinstance(given, dict):
        if given is not None:
            malformed = json.dumps(given, ensure_ascii=False)
        given = {}
    name = str(call.args[name_key]).strip()
    return call.model_copy(update={"tool": name, "args": given, "malformed": malformed})


def _read_json(text: str) -> tuple[JsonValue, str | None]:
    if not text.strip():
        return {}, None
    try:
        return cast("JsonValue", json.loads(text)), None
    except (ValueError, RecursionError):
        return None, text
