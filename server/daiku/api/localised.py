"""Events and failures with their texts for a person in the person's language."""

from __future__ import annotations

from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalAsked, Event, InputAsked, MessageEvent, Notice
from daiku.domain.messages import lines_of_ours
from daiku.texts.matcher import Words
from daiku.texts.text import Text


def localised(event: Event, words: Words) -> Event:
    """`event` as the person reads it. What a model said or reads is left alone."""
    words = _of_plain(words)
    match event:
        case Notice(text=text):
            return event.model_copy(update={"text": words(text)})
        case Failure(message=message, hint=hint):
            return event.model_copy(update={"message": words(message), "hint": words(hint)})
        case ApprovalAsked(why=why, remember=remember, preview=preview):
            if event.tool.endswith("/*"):  # a server as a whole: its preview is prose of ours
                preview = words(preview)
            return event.model_copy(
                update={"why": words(why), "remember": words(remember), "preview": preview}
            )
        case InputAsked(question=question, choices=choices) if event.from_server:
            said = tuple(words(choice) for choice in choices)
            return event.model_copy(update={"question": words(question), "choices": said})
        case MessageEvent(role="assistant", text=text) if lines := lines_of_ours(event.opaque):
            said_so = (words(line) if line in lines else line for line in text.split("\n"))
            return event.model_copy(update={"text": Text("\n".join(said_so))})
        case _:
            return event


def _of_plain(words: Words) -> Words:
    """What is a value already is put into a language where it is shown."""
    return lambda text: text if isinstance(text, Text) and text.id else words(text)


def localised_failure(failure: Failure, words: Words) -> Failure:
    """`failure` as the person reads it."""
    return failure.model_copy(update={"message": words(failure.message), "hint": words(failure.hint)})
