"""Choice of the tools that a model is sent, search for the deferred others, and calls of tools found by search."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.runs import Mode
from daiku.domain.tools import EditForm, ToolCall, ToolSpec
from daiku.domain.work.plans import Plan
from daiku.run.rules.calls.toolnames import match_spelling, wire_name
from daiku.texts.rules.patterns import lazy

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


MOST = 10
"""Tools described at once, at most."""
SHORT = 200
"""Characters of a description that is included completely."""

_TOOLS_BY_PATTERN: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (lazy(words, re.IGNORECASE), tools)
    for words, tools in (
        (r"\bplan(s|ning)?\b|計画|プランを", ("plan/propose",)),
        (
            r"\bcommit(s|ted|ting)?\b|\bgit\b|\bstaged?\b|コミット|ギット",
            ("git/status", "git/diff", "git/log", "git/commit"),
        ),
        (r"\bdiff(s|erences?)?\b|what (has )?changed|差分|変更点", ("git/status", "git/diff")),
        (r"\b(history|blame)\b|履歴", ("git/log",)),
        (
            r"in parallel|side by side|\b(sub-?)?agents?\b|\bdelegate|hand (it |this |them )?over|並行|並列|エージェント|手分け|任せ",
            ("agent/parallel", "agent/handoff"),
        ),
        (
            r"https?://|\bresearch\b|\b(the|on|inter)[ -]?(web|net)\b|\bonline\b|\bweb ?(site|page|search)|ウェブ|インターネット|ネットで|ネット検索|リサーチ",
            ("web/search", "web/fetch", "web/research"),
        ),
        (r"\b(rename|move)\b|リネーム|移動|名前を変", ("files/move",)),
        (r"\b(delete|remove)\b.{0,40}\bfiles?\b|ファイル.{0,20}(削除|消)", ("files/delete",)),
        (
            r"\b(defined?|definitions?|references?|callers?|usages?)\b|定義|参照|呼び出し元",
            ("editor/definition", "editor/references", "search/symbols"),
        ),
        (r"\b(diagnostics?|warnings?)\b|診断|警告", ("editor/diagnostics",)),
        (
            r"\b(remember(s|ed)?|forget|forgot(ten)?|keep in mind)\b|覚え|記憶|忘れ",
            ("memory/remember", "memory/search", "memory/forget"),
        ),
        (r"\bplaybook\b|\b(lessons?|conventions?|pitfalls?)\b|プレイブック|教訓|規約", ("playbook/search",)),
    )
)


def needed_tools(
    request: str,
    mode: Mode,
    deferred: Sequence[ToolSpec],
    plans: Sequence[Plan] = (),
    *,
    by_find: bool = True,
) -> str:
    """Describe the `deferred` tools that `request` needs in this mode and with these plans, one line each.

    `by_find=False`: the model calls them by name, without tools/call.
    """
    if not deferred:
        return ""
    names = dict.fromkeys((*_names_by_state(mode, plans), *_names_by_words(request)))
    if not names:
        return ""
    specs = {spec.name: spec for spec in deferred}
    needed = [specs[name] for name in names if name in specs][:MOST]
    if not needed:
        return ""
    from daiku.run.rules.calls.jsonargs import usage_of  # when used

    instruction = HOW if by_find else "Call them by these names."
    lines = (f"- {wire_name(s.name)} {usage_of(s.parameters)}: {_shorten(s.description)}" for s in needed)
    return "\n".join((f"Further tools that may serve this request. {instruction}", *lines))


def _names_by_state(mode: Mode, plans: Sequence[Plan]) -> tuple[str, ...]:
    statuses = {plan.status for plan in plans}
    names: tuple[str, ...] = ("plan/propose",) if mode == "plan" else ()
    if "draft" in statuses:
        names += ("plan/approve", "plan/get")
    if mode == "act" and statuses & {"approved", "in_progress", "failed"}:
        names += ("plan/update_step", "task/generate_list", "task_loop/run", "plan/get")
    return names


def _names_by_words(request: str) -> tuple[str, ...]:
    return tuple(tool for words, tools in _TOOLS_BY_PATTERN if words.search(request) for tool in tools)


def _shorten(description: str) -> str:
    """Return a short description unchanged, else its first sentence."""
    description_line = " ".join(description.split())
    return (
        description_line
        if len(description_line) <= SHORT
        else description_line.partition(". ")[0].removesuffix(".") + "."
    )
