"""Shortening of old tool results: first shorten_superseded ones, then all old ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from daiku.domain.held import ShortenedResult
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import Effect, ToolCall
from daiku.guard.rules.referenced_paths import touched_paths
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.decisive import decisive_lines, truncate_output

LEAST = 400
"""Characters above which a result is worth shortening."""
DECISIVE_ROOM = 300
"""Characters of decisive lines that a shortened command output keeps."""
REST = 600
"""Characters that are kept of an old result that cannot be reproduced."""
CHARACTERS = 3
"""Characters per token, at least."""
_READ = "files/read"


class AnsweredCall(NamedTuple):
    """A result, its position among the messages, and its call as the tool received it."""

    position: int
    message: ToolMessage
    call: ToolCall
    effect: Effect | None


class Reading(NamedTuple):
    """Functions that interpret calls: arguments as the tool gets them, and its effect (None: unknown)."""

    call: Callable[[ToolCall], ToolCall]
    effect: Callable[[str], Effect | None]


def iter_answered_calls(messages: Sequence[Message], reading: Reading) -> Iterator[AnsweredCall]:
    """Yield every result with its call, in order."""
    open_calls: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            open_calls.update({call.id: call for call in message.calls})
        elif isinstance(message, ToolMessage) and (call := open_calls.pop(message.call_id, None)) is not None:
            call = reading.call(call)
            yield AnsweredCall(index, message, call, reading.effect(call.tool))


def shorten_superseded(
    messages: Sequence[Message], start: int, reading: Reading
) -> tuple[ShortenedResult, ...]:
    """Return replacements for results before `start` superseded by later calls, and for listings and searches."""
    read_again: dict[str, list[tuple[int, int]]] = {}
    changed: set[str] = set()
    ran_again: set[str] = set()
    replacements: list[ShortenedResult] = []
    for each in reversed(tuple(iter_answered_calls(messages, reading))):
        reason = _superseded_reason(each, read_again, changed, ran_again)
        if reason and each.position < start and len(each.message.text) > LEAST:
            replacements.append(_replacement_of(each, reason))
        _record_later_call(each, read_again, changed, ran_again)
    return tuple(reversed(replacements))


def _superseded_reason(
    each: AnsweredCall, read_again: dict[str, list[tuple[int, int]]], changed: set[str], ran_again: set[str]
) -> str:
    call = each.call
    if call.tool == _READ:
        path = plain_path(call)
        first, last = _line_range(call)
        if any(begin <= first and last <= end for begin, end in read_again.get(path, ())):
            return "the file was read again later"
        return f"{path} was changed since" if path in changed else ""
    if each.effect == "command":
        return "the same command ran again later" if _call_key(call) in ran_again else ""
    return "it is old" if each.effect == "read" else ""


def _record_later_call(
    each: AnsweredCall, read_again: dict[str, list[tuple[int, int]]], changed: set[str], ran_again: set[str]
) -> None:
    """Record what supersedes earlier results."""
    call = each.call
    if each.effect == "command":
        ran_again.add(_call_key(call))
    elif not each.message.ok:
        return
    elif call.tool == _READ:
        read_again.setdefault(plain_path(call), []).append(_line_range(call))
    elif each.effect == "edit":
        changed.update(path.removeprefix("./") for path in touched_paths(call))


def shorten_old(messages: Sequence[Message], stop: int, reading: Reading) -> tuple[ShortenedResult, ...]:
    """Return replacements for all long results before `stop`: one line, or the ends and decisive lines."""
    replacements: list[ShortenedResult] = []
    for each in iter_answered_calls(messages[:stop], reading):
        if len(each.message.text) <= LEAST and not each.message.images:
            continue
        if each.effect in ("read", "edit", "command"):
            replacements.append(_replacement_of(each, "it is old"))
        elif len(each.message.text) > REST or each.message.images:
            text = truncate_output(each.message.text, REST)
            replacements.append(ShortenedResult(at=each.position, call_id=each.message.call_id, text=text))
    return tuple(replacements)


def cut_newest(
    messages: Sequence[Message],
    start: int,
    budget: int,
    tokens: Callable[[Sequence[Message]], int],
    reading: Reading,
) -> tuple[ShortenedResult, ...]:
    """Return replacements for results from `start` on that exceed `budget` tokens; the newest stay complete."""
    replacements: list[ShortenedResult] = []
    remaining, has_complete = budget, False
    answered = {each.position: each for each in iter_answered_calls(messages, reading)}
    for index in range(len(messages) - 1, start - 1, -1):
        size, each = tokens(messages[index : index + 1]), answered.get(index)
        if each is None or size <= max(remaining, LEAST // 4):
            remaining -= size
            has_complete = has_complete or each is not None
            continue
        if has_complete:
            replacements.append(_replacement_of(each, "there was no room for all results"))
        else:
            text = truncate_output(
                each.message.text, max(remaining * CHARACTERS, LEAST), "Ask for a smaller part"
            )
            replacements.append(ShortenedResult(at=index, call_id=each.message.call_id, text=text))
            remaining, has_complete = 0, True
    return tuple(reversed(replacements))


def replace_results(messages: Sequence[Message], results: Sequence[ShortenedResult]) -> tuple[Message, ...]:
    """Return the messages with these results shortened; unmatched results are ignored."""
    replaced = list(messages)
    for each in results:
        old = replaced[each.at] if 0 <= each.at < len(replaced) else None
        if isinstance(old, ToolMessage) and old.call_id == each.call_id:
            replaced[each.at] = old.model_copy(update={"text": each.text, "images": ()})
    return tuple(replaced)


def _replacement_of(each: AnsweredCall, reason: str) -> ShortenedResult:
    """Return the line that replaces a result: what it was and how to get it again."""
    message, name = each.message, wire_name(each.call.tool)
    lines = message.text.count("\n") + 1
    description = f"{lines} lines of {name}" if message.ok or each.effect == "command" else f"{name} failed"
    if message.exit_code is not None:
        description = f"exit code {message.exit_code}, {description}"
    retry_hint = "" if each.effect == "edit" else " Call it again if you need it."
    output_note = f" The whole output is in {message.whole}." if message.whole else ""
    lines_shown = [f"[Left out to save room, because {reason}: {description}.{output_note}{retry_hint}]"]
    if each.effect == "command" or not message.ok:
        lines_shown += [line for _, line in decisive_lines(message.text, DECISIVE_ROOM)]
    return ShortenedResult(at=each.position, call_id=message.call_id, text="\n".join(lines_shown))


def plain_path(call: ToolCall) -> str:
    """Return the path argument of a call without a leading `./`; empty if there is none."""
    path = call.args.get("path")
    return path.removeprefix("./") if isinstance(path, str) else ""


def _line_range(call: ToolCall) -> tuple[int, int]:
    """Return the first and last line that a call reads, from 1; unbounded by default."""
    first, last = call.args.get("start_line"), call.args.get("end_line")
    return (first if isinstance(first, int) else 1), (last if isinstance(last, int) else 1_000_000_000)


def _call_key(call: ToolCall) -> str:
    return f"{call.tool} {json.dumps(call.args, sort_keys=True, ensure_ascii=False)}"
