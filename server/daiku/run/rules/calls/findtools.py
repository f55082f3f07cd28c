"""Search for deferred tools, and calls of tools found by search."""

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
"""Tools that one search describes, at most."""
MOST_CHARACTERS = 5000
"""Characters of one search result (about 1,250 tokens); further tools are only named."""
HOW = f'Call one with {wire_name(CALL)} {{"tool": "NAME", "args": {{…}}}}.'
_ARGS = ("args", "arguments", "parameters", "params", "input", "tool_input", "kwargs")
_NAMES = ("tool", "name", "tool_name")
_NESTED = 4
_ENDINGS = lazy(r"(?<=\w{3})(?:ing|es|ed|s)$")


def search_tools(query: str, deferred: Sequence[ToolSpec], offered: Sequence[ToolSpec] = ()) -> str:
    """Describe the tools that match `query`; without a query or a match, list the groups of tools."""
    if not deferred:
        return "There are no more tools than those that you were given."
    if not (words := _split_words(query)):
        return f"Tools by group: {group_names(deferred)}. Search by a word or a name to get their arguments."
    offered_match = match_spelling(query.strip(), [spec.name for spec in offered])
    matches = _rank(query, words, deferred) if offered_match is None else []
    if matches:
        return _describe_matches(query, matches, len(deferred))
    offered_matches = _rank(query, words, offered)[:3]
    offered_note = (
        f" You have been given {', '.join(wire_name(s.name) for s in offered_matches)}: call them directly."
        if offered_matches
        else ""
    )
    return (
        f"No further tool matches {query!r}.{offered_note} Further tools by group: {group_names(deferred)}."
    )


def _rank(query: str, words: Sequence[str], specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the matching tools, best first; an exact tool name returns only that tool."""
    exact = match_spelling(query.strip(), [spec.name for spec in specs])
    if exact is not None:
        return [spec for spec in specs if spec.name == exact]
    scored = [(sum(_score(word, spec) for word in words), at) for at, spec in enumerate(specs)]
    threshold = max(
        1, max((score for score, _ in scored), default=0) / 3
    )  # lower scores only share a common word
    return [
        specs[at] for score, at in sorted(scored, key=lambda each: (-each[0], each[1])) if score >= threshold
    ]


def _score(word: str, spec: ToolSpec) -> int:
    properties = spec.parameters.get("properties")
    keys = " ".join(properties) if isinstance(properties, dict) else ""
    places = ((spec.name, 6), (spec.description, 2), (keys, 1))
    return sum(
        weight
        for text, weight in places
        if any(tool_word.startswith(word) for tool_word in _split_words(text))
    )


def _split_words(text: str) -> list[str]:
    return [_ENDINGS.sub("", word) for word in re.findall(r"[^\W_]+", text.lower())]


def _describe_matches(query: str, matches: Sequence[ToolSpec], total: int) -> str:
    lines: list[str] = []
    size = 0
    for spec in matches[:MOST_FOUND]:
        schema = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
        entry = f"{wire_name(spec.name)}: {' '.join(spec.description.split())}\n{schema}"
        size += len(entry)
        if lines and size > MOST_CHARACTERS:
            break
        lines.append(entry[:MOST_CHARACTERS])
    other_names = [wire_name(spec.name) for spec in matches[len(lines) :][:20]]
    more = f"\n\nAlso: {', '.join(other_names)}; find one by its name." if other_names else ""
    head = f"{len(matches)} of {total} further tools match {query!r}. {HOW}"
    return "\n\n".join([head, *lines]) + more


def unwrap_call(call: ToolCall) -> ToolCall:
    """Return the call inside a call of tools/call, unchecked; any other call unchanged."""
    for _ in range(_NESTED):
        if match_spelling(call.tool, (CALL,)) is None or call.malformed is not None:
            return call
        inner = _inner_call(call)
        if inner is None:
            return call
        call = inner
    return call


def _inner_call(call: ToolCall) -> ToolCall | None:
    name_key = next((key for key in _NAMES if isinstance(call.args.get(key), str) and call.args[key]), None)
    if name_key is None:
        return None
    args_key = next((key for key in _ARGS if key in call.args), None)
    rest: JsonObject = {key: value for key, value in call.args.items() if key != name_key}
    args: JsonValue = rest if args_key is None else call.args[args_key]
    malformed: str | None = None
    if isinstance(args, str):
        args, malformed = _read_json(args)
    if not isinstance(args, dict):
        if args is not None:
            malformed = json.dumps(args, ensure_ascii=False)
        args = {}
    name = str(call.args[name_key]).strip()
    return call.model_copy(update={"tool": name, "args": args, "malformed": malformed})


def _read_json(text: str) -> tuple[JsonValue, str | None]:
    if not text.strip():
        return {}, None
    try:
        return cast("JsonValue", json.loads(text)), None
    except (ValueError, RecursionError):
        return None, text
