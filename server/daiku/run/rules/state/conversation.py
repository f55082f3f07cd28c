"""What a person said in a conversation, in their own words: bounded, the latest first."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.domain.chunks import Chunk
from daiku.domain.events import InputAsked, InputGiven, MessageEvent, RunStarted
from daiku.domain.messages import UserMessage
from daiku.run.rules.state.state import PERSON, State
from daiku.texts.rules.truncate import truncate_middle

MOST_WORDS = 12
"""Things said that a stage is told."""
SHORT = 4
"""Characters below which nothing is said that a stage could use: “go”, “yes”, “ok”."""
SHARE = 1500
"""Characters of one of them."""
ALL = 8000
"""Characters of all of them together."""


def person_words(state: State) -> tuple[str, ...]:
    """What the person said in a run and in the conversation before it, the latest first."""
    brought = state.request.brief.said if state.request.brief is not None else ()
    before = [
        m.words
        for m in state.conversation.messages[: state.conversation.start]
        if isinstance(m, UserMessage) and m.kind == "person"
    ]
    return limit_texts((*brought, *reversed([*before, state.request.prompt, *state.conversation.steering])))


def recorded_words(past: Iterable[Chunk]) -> tuple[str, ...]:
    """What the person said in the record of a session, the latest first."""
    found: list[str] = []
    asked: dict[str, str] = {}
    for chunk in past:
        match chunk.event:
            case RunStarted(prompt=prompt) if chunk.parent is None:
                found.append(prompt)
            case MessageEvent(role="user", agent=agent, text=text) if agent == PERSON:
                found.append(text)
            case InputAsked(input_id=key, question=question):
                asked[key] = question
            case InputGiven(input_id=key, text=text, unattended=False):
                found.append(f"{asked[key]} {text}" if asked.get(key) else text)
            case _:
                pass
    return limit_texts(reversed(found))


def limit_texts(words: Iterable[str]) -> tuple[str, ...]:
    """Return as many texts as fit the size limits, without duplicates, keeping the first ones."""
    kept: list[str] = []
    room = ALL
    for text in dict.fromkeys(each.strip() for each in words):
        share = truncate_middle(text, SHARE)
        if len(text) < SHORT or len(kept) == MOST_WORDS or len(share) > room:
            continue
        kept.append(share)
        room -= len(share)
    return tuple(kept)


def describe_words(words: Iterable[str], request: str) -> str:
    """Format the person's earlier messages that `request` does not contain; empty if there are none."""
    news = [text for text in words if text not in request]
    lines = ("- " + text.replace("\n", "\n  ") for text in news)
    return "\n".join([HEAD, *lines]) if news else ""


HEAD = "What the person said in this conversation, in their own words, the latest first. It holds for this work too:"
