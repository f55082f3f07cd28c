"""The user's own messages in a conversation, bounded, newest first."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.domain.chunks import Chunk
from daiku.domain.events import InputAsked, InputGiven, MessageEvent, RunStarted
from daiku.domain.messages import UserMessage
from daiku.run.rules.state.state import PERSON, State
from daiku.texts.rules.truncate import truncate_middle

MOST_WORDS = 12
"""Messages that a stage receives, at most."""
SHORT = 4
"""Characters below which a message is skipped, such as “go”, “yes”, “ok”."""
SHARE = 1500
"""Characters of one message, at most."""
ALL = 8000
"""Characters of all messages together, at most."""


def user_messages(state: State) -> tuple[str, ...]:
    """Return the user's messages in a run and its conversation before it, newest first."""
    inherited = state.request.brief.said if state.request.brief is not None else ()
    earlier = [
        m.words
        for m in state.conversation.messages[: state.conversation.start]
        if isinstance(m, UserMessage) and m.kind == "person"
    ]
    return limit_texts(
        (*inherited, *reversed([*earlier, state.request.prompt, *state.conversation.steering]))
    )


def recorded_user_messages(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """Return the user's messages in the chunks of a session, newest first."""
    messages: list[str] = []
    questions: dict[str, str] = {}
    for chunk in chunks:
        match chunk.event:
            case RunStarted(prompt=prompt) if chunk.parent is None:
                messages.append(prompt)
            case MessageEvent(role="user", agent=agent, text=text) if agent == PERSON:
                messages.append(text)
            case InputAsked(input_id=key, question=question):
                questions[key] = question
            case InputGiven(input_id=key, text=text, unattended=False):
                messages.append(f"{questions[key]} {text}" if questions.get(key) else text)
            case _:
                pass
    return limit_texts(reversed(messages))


def limit_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return as many texts as fit the limits, without duplicates, from the first on."""
    selected: list[str] = []
    room = ALL
    for text in dict.fromkeys(each.strip() for each in texts):
        excerpt = truncate_middle(text, SHARE)
        if len(text) < SHORT or len(selected) == MOST_WORDS or len(excerpt) > room:
            continue
        selected.append(excerpt)
        room -= len(excerpt)
    return tuple(selected)


def format_user_messages(messages: Iterable[str], request: str) -> str:
    """Format the earlier messages that `request` does not contain; empty if there are none."""
    new_messages = [text for text in messages if text not in request]
    lines = ("- " + text.replace("\n", "\n  ") for text in new_messages)
    return "\n".join([HEAD, *lines]) if new_messages else ""


HEAD = "What the person said in this conversation, in their own words, the latest first. It holds for this work too:"
