"""Compaction of the conversation: shorten tool results first, then summarize all but the newest messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.held import Pruned, ShortenedResult
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import Effect, ToolCall
from daiku.guard.rules.referenced_paths import touched_paths
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.context import character_count, is_rules
from daiku.run.rules.state.state import Conversation, State
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


KEPT_TOKENS = 20_000
"""Tokens of the newest messages that stay unchanged, at most."""
KEPT_SHARE = 0.33
"""Share of the room for messages that the newest ones may take."""
LONGEST_SHARE = 0.6
"""Share of the room that results of the newest replies may take; the rest is cut."""
FREE_SHARE = 0.4
"""Share of the room that must be free after shortening results, so that the prompt cache survives a while."""
FREE_SHARE_SMALL = 0.2
"""FREE_SHARE for a small context window."""
SMALL_ROOM = 12_000
"""Tokens of room below which a window is small: there a summary costs more than a lost cache."""
LEAST_OLD = 0.15
"""Share of the room that old messages must take to be worth a summary."""
REFUSED_SHARE = 0.7
"""Share of its size that a refused request may have after compaction."""
MOST_OFF = 1.5
"""Factor by which a provider's token count may exceed the estimate; a retried reply is counted twice."""
NAMES_SHARE = 2_000
"""Characters of file names that a summary lists, for files read and files changed each."""
WORK_SHARE = 0.7
"""Share of the context window above which a work item's conversation is condensed."""
WORK_KEPT = 5
"""Number of newest messages that a work item's summary keeps."""
MOST_PER_CHARACTER = 1.5
"""Tokens per character, at most."""
MOST_PER_MESSAGE = 10
"""Tokens of a message's structure, at most."""
MOST_PER_IMAGE = 2_500
"""Tokens of an image, at most."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Room for requests.

    `limit`: tokens, 0: unknown. `prefix` and `tokens` measure it. `kept`: number of newest messages that a
    summary keeps, 0: as many as fit.
    """

    limit: int
    prefix: Callable[[], int]
    tokens: Callable[[Sequence[Message]], int]
    reading: Reading
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Condensing:
    """Results to shorten, and number of messages to keep with a summary (None: no summary).

    `size`: tokens of the request.
    """

    pruned: Pruned | None
    kept: int | None
    size: int


def is_full(conversation: Conversation, window: ContextWindow) -> bool:
    """Return True if the next request would exceed the limit. Counts tokens only if it might."""
    if not window.limit:
        return False
    new_messages = (
        conversation.messages[conversation.counted :] if conversation.tokens else conversation.messages
    )
    known_tokens = conversation.tokens or window.prefix()
    if known_tokens + _token_upper_bound(new_messages) <= window.limit:
        return False
    return known_tokens + window.tokens(new_messages) > window.limit


def _token_upper_bound(messages: Sequence[Message]) -> int:
    """Return an upper bound of the tokens of `messages` without tokenizing."""
    images = sum(len(m.images) for m in messages if not isinstance(m, AssistantMessage))
    thinking = sum(len(m.thinking) for m in messages if isinstance(m, AssistantMessage))
    characters = character_count(messages) + thinking
    return int(characters * MOST_PER_CHARACTER) + MOST_PER_MESSAGE * len(messages) + MOST_PER_IMAGE * images


def plan_condensing(state: State, window: ContextWindow, *, refused: bool = False) -> Condensing | None:
    """Plan how to condense the conversation; None if that saves nothing.

    `refused`: the provider rejected the request as too long.
    """
    conversation = state.conversation
    prefix = window.prefix()
    size = _request_tokens(conversation, window, prefix)
    limit = min(window.limit or size, int(size * REFUSED_SHARE)) if refused else window.limit
    room = max(0, limit - prefix)
    free = room * (FREE_SHARE_SMALL if room <= SMALL_ROOM else FREE_SHARE)
    if not refused and (kept_start := _count_start(conversation.messages, window, room)) is not None:
        return Condensing(None, len(conversation.messages) - kept_start, size)
    budget = min(KEPT_TOKENS, int(room * KEPT_SHARE))
    start = find_keep_start(conversation.messages, budget, window.tokens)
    superseded_results = shorten_superseded(conversation.messages, start, window.reading)
    cut = cut_newest(conversation.messages, start, int(room * LONGEST_SHARE), window.tokens, window.reading)
    all_results = _merge(superseded_results, shorten_old(conversation.messages, start, window.reading))
    saved = _saved_tokens(conversation.messages, (*superseded_results, *cut), window.tokens)
    if (superseded_results or cut) and size - saved <= limit - free:
        return Condensing(_to_event((*superseded_results, *cut), size, saved), None, size)
    old = [m for m in conversation.messages[:start] if not is_rules(m)]
    if len(old) > 1 and (refused or window.tokens(old) >= room * LEAST_OLD):
        saved = _saved_tokens(conversation.messages, cut, window.tokens)
        return Condensing(
            _to_event(cut, size, saved) if cut else None, len(conversation.messages) - start, size
        )
    if saved > (0 if refused else room * LEAST_OLD):
        return Condensing(_to_event((*all_results, *cut), size, saved), None, size)
    return None


def _count_start(messages: Sequence[Message], window: ContextWindow, room: int) -> int | None:
    """Return the index of the first of the newest `window.kept` messages, None if nothing is saved."""
    if not window.kept:
        return None
    start = max(0, len(messages) - window.kept)
    while start and isinstance(messages[start], ToolMessage):
        start -= 1
    old = [m for m in messages[:start] if not is_rules(m)]
    if len(old) < 2 or window.tokens(old) < room * LEAST_OLD:
        return None
    return start if window.tokens(messages[start:]) <= room * LONGEST_SHARE else None


def _request_tokens(conversation: Conversation, window: ContextWindow, prefix: int) -> int:
    estimate = prefix + window.tokens(conversation.messages)
    if not conversation.tokens:
        return estimate
    return min(
        conversation.tokens + window.tokens(conversation.messages[conversation.counted :]),
        int(estimate * MOST_OFF),
    )


def _to_event(results: tuple[ShortenedResult, ...], size: int, saved: int) -> Pruned:
    return Pruned(results=results, before_tokens=size, after_tokens=max(0, size - saved))


def _saved_tokens(
    messages: Sequence[Message],
    results: Sequence[ShortenedResult],
    tokens: Callable[[Sequence[Message]], int],
) -> int:
    before = [messages[each.at] for each in results]
    after = replace_results(messages, results)
    return tokens(before) - tokens([after[each.at] for each in results])


def _merge(
    first: tuple[ShortenedResult, ...], others: tuple[ShortenedResult, ...]
) -> tuple[ShortenedResult, ...]:
    """Merge both in order; `first` wins if both replace the same result."""
    by_index = {each.at: each for each in (*others, *first)}
    return tuple(by_index[at] for at in sorted(by_index))


def find_keep_start(
    messages: Sequence[Message], budget: int, tokens: Callable[[Sequence[Message]], int]
) -> int:
    """Return the index from which the newest `budget` tokens are kept, at least the last reply and results."""
    start, used, has_reply = len(messages), 0, False
    for index in range(len(messages) - 1, -1, -1):
        used += tokens(messages[index : index + 1])
        if isinstance(messages[index], ToolMessage):
            continue
        results = sum(isinstance(m, ToolMessage) for m in messages[index:start])
        if used > budget and has_reply and (results < 2 or tokens(messages[start:]) > budget / 2):
            break
        start, has_reply = index, has_reply or isinstance(messages[index], AssistantMessage)
        if used > budget and has_reply:
            break
    return start


def file_lists(state: State, start: int, reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files read, and the files changed, in the messages before `start`."""
    conversation = state.conversation
    read, changed = dict.fromkeys(conversation.files_read), dict.fromkeys(conversation.files_changed)
    for each in iter_answered_calls(conversation.messages[:start], reading):
        if not each.message.ok:
            continue
        if each.call.tool == "files/read":
            read[plain_path(each.call)] = None
        elif each.effect == "edit":
            changed.update(dict.fromkeys(path.removeprefix("./") for path in touched_paths(each.call)))
    changed.update(dict.fromkeys(file.path for file in state.done.files))
    only_read = [path for path in read if path and path not in changed]
    return _newest_names(only_read), _newest_names([*changed])


def _newest_names(names: Sequence[str]) -> tuple[str, ...]:
    first, room = len(names), NAMES_SHARE
    while first and len(names[first - 1]) + 2 <= room:
        first -= 1
        room -= len(names[first]) + 2
    return tuple(names[first:])
