"""When and how the conversation is made shorter: results first, then a summary of all but the newest part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daiku.dataclass import dataclass
from daiku.domain.held import Pruned, ShortenedResult
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.guard.rules.referenced_paths import touched_paths
from daiku.run.rules.state.context import character_count, is_rules
from daiku.run.rules.state.shorten import (
    Reading,
    answered_calls,
    cut_newest,
    old_results,
    plain_path,
    put_in_place,
    superseded,
)
from daiku.run.rules.state.state import Conversation, State

KEPT_TOKENS = 20_000
"""Tokens of the newest messages that stay as they are; less where the window is small."""
KEPT_SHARE = 0.33
"""Part of the room for messages that the newest ones may take."""
LONGEST_SHARE = 0.6
"""Part of the room that the results of the newest replies may take; what is above is cut."""
FREE_SHARE = 0.4
"""Part of the room that must be free after results were shortened, so that the cache is not lost again soon."""
FREE_SHARE_SMALL = 0.2
SMALL_ROOM = 12_000
"""Tokens of room up to which a window is small: there a summary costs more than a cache."""
LEAST_OLD = 0.15
"""Part of the room that old messages must take for a summary of them to be worth its call."""
REFUSED_SHARE = 0.7
"""After a refusal the request must come to at most so much of what it was."""
MOST_OFF = 1.5
"""A service's count of a reply that was asked for twice holds both: no more than so many times the estimate."""
NAMES_SHARE = 2_000
"""Characters of the names of files read, and of files changed, that stand beside a summary: the latest."""
WORK_SHARE = 0.7
"""Part of its model's window from which on a work item's conversation is condensed (S2C.16, S2C.18)."""
WORK_KEPT = 5
"""The newest messages that stay as they are then."""
MOST_PER_CHARACTER = 1.5
MOST_PER_MESSAGE = 10
MOST_PER_IMAGE = 2_500


@dataclass(frozen=True, slots=True)
class Window:
    """How much may be sent: `limit` in tokens (0: unknown), how it is measured, and how calls are read.
    `kept`: number of newest messages to keep beside a summary; 0: as many as fit."""

    limit: int
    prefix: Callable[[], int]
    tokens: Callable[[Sequence[Message]], int]
    reading: Reading
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Condensing:
    """Results to shorten, and messages to keep beside a summary (None: no summary). `size`: tokens of the request."""

    pruned: Pruned | None
    kept: int | None
    size: int


def is_full(told: Conversation, window: Window) -> bool:
    """Whether the next request would be larger than the limit. Counts tokens only where it may be."""
    if not window.limit:
        return False
    new = told.messages[told.counted :] if told.tokens else told.messages
    known = told.tokens or window.prefix()
    if known + _most_tokens(new) <= window.limit:
        return False
    return known + window.tokens(new) > window.limit


def _most_tokens(messages: Sequence[Message]) -> int:
    """No fewer than the tokens of `messages`, without looking at their text."""
    images = sum(len(m.images) for m in messages if not isinstance(m, AssistantMessage))
    thought = sum(len(m.thinking) for m in messages if isinstance(m, AssistantMessage))
    characters = character_count(messages) + thought
    return int(characters * MOST_PER_CHARACTER) + MOST_PER_MESSAGE * len(messages) + MOST_PER_IMAGE * images


def plan_condensing(state: State, window: Window, *, refused: bool = False) -> Condensing | None:
    """Plan how to shorten the conversation; None if nothing is won. `refused`: the service found it too long."""
    told = state.conversation
    prefix = window.prefix()
    size = _size(told, window, prefix)
    limit = min(window.limit or size, int(size * REFUSED_SHARE)) if refused else window.limit
    room = max(0, limit - prefix)
    free = room * (FREE_SHARE_SMALL if room <= SMALL_ROOM else FREE_SHARE)
    if not refused and (counted := _by_count(told.messages, window, room)) is not None:
        return Condensing(None, len(told.messages) - counted, size)
    budget = min(KEPT_TOKENS, int(room * KEPT_SHARE))
    start = keep_start(told.messages, budget, window.tokens)
    gone = superseded(told.messages, start, window.reading)
    cut = cut_newest(told.messages, start, int(room * LONGEST_SHARE), window.tokens, window.reading)
    every = _merged(gone, old_results(told.messages, start, window.reading))
    saved = _saved(told.messages, (*gone, *cut), window.tokens)
    if (gone or cut) and size - saved <= limit - free:
        return Condensing(_pruned((*gone, *cut), size, saved), None, size)
    old = [m for m in told.messages[:start] if not is_rules(m)]
    if len(old) > 1 and (refused or window.tokens(old) >= room * LEAST_OLD):
        saved = _saved(told.messages, cut, window.tokens)
        return Condensing(_pruned(cut, size, saved) if cut else None, len(told.messages) - start, size)
    if saved > (0 if refused else room * LEAST_OLD):
        return Condensing(_pruned((*every, *cut), size, saved), None, size)
    return None


def _by_count(messages: Sequence[Message], window: Window, room: int) -> int | None:
    """Return the index of the first of the newest `window.kept` messages; None if keeping these wins nothing."""
    if not window.kept:
        return None
    start = max(0, len(messages) - window.kept)
    while start and isinstance(messages[start], ToolMessage):
        start -= 1
    old = [m for m in messages[:start] if not is_rules(m)]
    if len(old) < 2 or window.tokens(old) < room * LEAST_OLD:
        return None
    return start if window.tokens(messages[start:]) <= room * LONGEST_SHARE else None


def _size(told: Conversation, window: Window, prefix: int) -> int:
    estimate = prefix + window.tokens(told.messages)
    if not told.tokens:
        return estimate
    return min(told.tokens + window.tokens(told.messages[told.counted :]), int(estimate * MOST_OFF))


def _pruned(results: tuple[ShortenedResult, ...], size: int, saved: int) -> Pruned:
    return Pruned(results=results, before_tokens=size, after_tokens=max(0, size - saved))


def _saved(
    messages: Sequence[Message],
    results: Sequence[ShortenedResult],
    tokens: Callable[[Sequence[Message]], int],
) -> int:
    before = [messages[each.at] for each in results]
    after = put_in_place(messages, results)
    return tokens(before) - tokens([after[each.at] for each in results])


def _merged(
    first: tuple[ShortenedResult, ...], others: tuple[ShortenedResult, ...]
) -> tuple[ShortenedResult, ...]:
    """Both in order; where both name a result, that of the `first`."""
    found = {each.at: each for each in (*others, *first)}
    return tuple(found[at] for at in sorted(found))


def keep_start(messages: Sequence[Message], budget: int, tokens: Callable[[Sequence[Message]], int]) -> int:
    """Return the index from which the newest `budget` tokens are kept: at least the last reply, with its results."""
    start, taken, replied = len(messages), 0, False
    for at in range(len(messages) - 1, -1, -1):
        taken += tokens(messages[at : at + 1])
        if isinstance(messages[at], ToolMessage):
            continue
        results = sum(isinstance(m, ToolMessage) for m in messages[at:start])
        if taken > budget and replied and (results < 2 or tokens(messages[start:]) > budget / 2):
            break
        start, replied = at, replied or isinstance(messages[at], AssistantMessage)
        if taken > budget and replied:
            break
    return start


def file_lists(state: State, start: int, reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that were read, and those that were changed, in what a summary up to `start` replaces."""
    told = state.conversation
    read, changed = dict.fromkeys(told.files_read), dict.fromkeys(told.files_changed)
    for each in answered_calls(told.messages[:start], reading):
        if not each.message.ok:
            continue
        if each.call.tool == "files/read":
            read[plain_path(each.call)] = None
        elif each.effect == "edit":
            changed.update(dict.fromkeys(path.removeprefix("./") for path in touched_paths(each.call)))
    changed.update(dict.fromkeys(file.path for file in state.done.files))
    only_read = [path for path in read if path and path not in changed]
    return _latest(only_read), _latest([*changed])


def _latest(names: Sequence[str]) -> tuple[str, ...]:
    kept, room = len(names), NAMES_SHARE
    while kept and len(names[kept - 1]) + 2 <= room:
        kept -= 1
        room -= len(names[kept]) + 2
    return tuple(names[kept:])
