"""Events and failures with their texts for a person in the person's language."""

from __future__ import annotations

from daiku.core.words import Words
from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalAsked, ErrorHappened, Event, InputAsked, Notice


def localised(event: Event, words: Words) -> Event:
    """`event` as the person reads it. What a model said or reads is left alone."""
    match event:
        case Notice(text=text):
            return event.model_copy(update={"text": words(text)})
        case ErrorHappened(message=message, hint=hint):
            return event.model_copy(update={"message": words(message), "hint": words(hint)})
        case ApprovalAsked(why=why, remember=remember, preview=preview):
            if event.tool.endswith("/*"):  # a server as a whole: its preview is prose of ours
                preview = words(preview)
            return event.model_copy(
                update={"why": words(why), "remember": words(remember), "preview": preview}
            )
        case InputAsked(question=question) if event.call_id.startswith("mcp:"):  # a server's, not a model's
            return event.model_copy(update={"question": words(question)})
        case _:
            return event


def localised_failure(failure: Failure, words: Words) -> Failure:
    """`failure` as the person reads it."""
    return failure.model_copy(update={"message": words(failure.message), "hint": words(failure.hint)})
