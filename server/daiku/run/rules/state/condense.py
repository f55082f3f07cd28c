"""Compaction of the conversation: shorten tool results first, then summarize all but the newest messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daiku.dataclass import dataclass
from daiku.domain.held import Pruned, ShortenedResult
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.guard.rules.referenced_paths import touched_paths
from daiku.run.rules.state.context import character_count, is_rules
from daiku.run.rules.state.shorten import (
    Reading,
    cut_newest,
    iter_answered_calls,
    plain_path,
    replace_results,
    shorten_old,
    shorten_superseded,
)
from daiku.run.rules.state.state import Conversation, State

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
