"""Old tool results made short: those that later ones supersede, and, where that is not enough, all old ones."""

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
"""Characters from which on a result is worth shortening."""
DECISIVE_ROOM = 300
"""Characters of decisive lines that a shortened output of a command keeps."""
REST = 600
"""Characters that are kept of an old result which no second call can give again."""
CHARACTERS = 3
"""Characters that a token of output has at least, nearly always."""
_READ = "files/read"


class Answered(NamedTuple):
    """A result, where it stands among the messages, and its call as the tool got it."""

    at: int
    message: ToolMessage
    call: ToolCall
    effect: Effect | None


class Reading(NamedTuple):
    """How calls are read here: a call as its tool gets it, and a tool's effect (None: unknown)."""

    call: Callable[[ToolCall], ToolCall]
    effect: Callable[[str], Effect | None]


def answered_calls(messages: Sequence[Message], reading: Reading) -> Iterator[Answered]:
    """Every result with its call, in order."""
    open_calls: dict[str, ToolCall] = {}
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            open_calls.update({call.id: call for call in message.calls})
        elif isinstance(message, ToolMessage) and (call := open_calls.pop(message.call_id, None)) is not None:
            call = reading.call(call)
            yield Answered(at, message, call, reading.effect(call.tool))


def superseded(messages: Sequence[Message], start: int, reading: Reading) -> tuple[ShortenedResult, ...]:
    """Return replacements for results before `start` that later work supersedes, and for listings and searches."""
    read_again: dict[str, list[tuple[int, int]]] = {}
    changed: set[str] = set()
    ran_again: set[str] = set()
    found: list[ShortenedResult] = []
    for each in reversed(tuple(answered_calls(messages, reading))):
        why = _why_superseded(each, read_again, changed, ran_again)
        if why and each.at < start and len(each.message.text) > LEAST:
            found.append(_shortened(each, why))
        _note(each, read_again, changed, ran_again)
    return tuple(reversed(found))


def _why_superseded(
    each: Answered, read_again: dict[str, list[tuple[int, int]]], changed: set[str], ran_again: set[str]
) -> str:
    call = each.call
    if call.tool == _READ:
        path = plain_path(call)
        first, last = _lines(call)
        if any(begin <= first and last <= end for begin, end in read_again.get(path, ())):
            return "the file was read again later"
        return f"{path} was changed since" if path in changed else ""
    if each.effect == "command":
        return "the same command ran again later" if _key(call) in ran_again else ""
    return "it is old" if each.effect == "read" else ""


def _note(
    each: Answered, read_again: dict[str, list[tuple[int, int]]], changed: set[str], ran_again: set[str]
) -> None:
    """Take in what supersedes earlier results."""
    call = each.call
    if each.effect == "command":
        ran_again.add(_key(call))
    elif not each.message.ok:
        return
    elif call.tool == _READ:
        read_again.setdefault(plain_path(call), []).append(_lines(call))
    elif each.effect == "edit":
        changed.update(path.removeprefix("./") for path in touched_paths(call))


def old_results(messages: Sequence[Message], stop: int, reading: Reading) -> tuple[ShortenedResult, ...]:
    """Return replacements for all long results before `stop`: one line, or the ends and decisive lines."""
    found: list[ShortenedResult] = []
    for each in answered_calls(messages[:stop], reading):
        if len(each.message.text) <= LEAST and not each.message.images:
            continue
        if each.effect in ("read", "edit", "command"):
            found.append(_shortened(each, "it is old"))
        elif len(each.message.text) > REST or each.message.images:
            text = truncate_output(each.message.text, REST)
            found.append(ShortenedResult(at=each.at, call_id=each.message.call_id, text=text))
    return tuple(found)


def cut_newest(
    messages: Sequence[Message],
    start: int,
    budget: int,
    tokens: Callable[[Sequence[Message]], int],
    reading: Reading,
) -> tuple[ShortenedResult, ...]:
    """Return replacements for results from `start` on that exceed `budget` tokens: the newest stay complete."""
    found: list[ShortenedResult] = []
    left, whole = budget, False
    answered = {each.at: each for each in answered_calls(messages, reading)}
    for at in range(len(messages) - 1, start - 1, -1):
        size, each = tokens(messages[at : at + 1]), answered.get(at)
        if each is None or size <= max(left, LEAST // 4):
            left -= size
            whole = whole or each is not None
            continue
        if whole:
            found.append(_shortened(each, "there was no room for all results"))
        else:
            text = truncate_output(each.message.text, max(left * CHARACTERS, LEAST), "Ask for a smaller part")
            found.append(ShortenedResult(at=at, call_id=each.message.call_id, text=text))
            left, whole = 0, True
    return tuple(reversed(found))


def put_in_place(messages: Sequence[Message], results: Sequence[ShortenedResult]) -> tuple[Message, ...]:
    """The messages with these results shortened; what fits no result changes nothing."""
    after = list(messages)
    for each in results:
        old = after[each.at] if 0 <= each.at < len(after) else None
        if isinstance(old, ToolMessage) and old.call_id == each.call_id:
            after[each.at] = old.model_copy(update={"text": each.text, "images": ()})
    return tuple(after)


def _shortened(each: Answered, why: str) -> ShortenedResult:
    """The line in place of a result: what it was and how to get it again."""
    message, name = each.message, wire_name(each.call.tool)
    lines = message.text.count("\n") + 1
    what = f"{lines} lines of {name}" if message.ok or each.effect == "command" else f"{name} failed"
    if message.exit_code is not None:
        what = f"exit code {message.exit_code}, {what}"
    again = "" if each.effect == "edit" else " Call it again if you need it."
    whole = f" The whole output is in {message.whole}." if message.whole else ""
    said = [f"[Left out to save room, because {why}: {what}.{whole}{again}]"]
    if each.effect == "command" or not message.ok:
        said += [line for _, line in decisive_lines(message.text, DECISIVE_ROOM)]
    return ShortenedResult(at=each.at, call_id=message.call_id, text="\n".join(said))


def plain_path(call: ToolCall) -> str:
    """The path that a call of a file names, without a leading `./`; empty if none."""
    path = call.args.get("path")
    return path.removeprefix("./") if isinstance(path, str) else ""


def _lines(call: ToolCall) -> tuple[int, int]:
    """The lines that a call reads, from 1; all of them without bounds."""
    first, last = call.args.get("start_line"), call.args.get("end_line")
    return (first if isinstance(first, int) else 1), (last if isinstance(last, int) else 1_000_000_000)


def _key(call: ToolCall) -> str:
    return f"{call.tool} {json.dumps(call.args, sort_keys=True, ensure_ascii=False)}"
