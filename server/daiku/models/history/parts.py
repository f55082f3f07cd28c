"""Parts of a message history that a service may refuse (images, long results, provider data), and their removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, assert_never

from daiku.domain.errors import ContextOverflowError, LLMError, LLMRequestError
from daiku.domain.messages import (
    OWN_KEY,
    AssistantMessage,
    Image,
    Message,
    ModelRequest,
    ToolMessage,
    UserMessage,
)
from daiku.texts.text import Text, text

Part: TypeAlias = Literal["images", "results", "provider_data"]
"""A part that can be removed from a history: images, long tool results, or opaque provider data."""
PARTS: tuple[Part, ...] = ("images", "results", "provider_data")
LONG_RESULT = 16_000
"""Characters above which a tool result may be the reason for a refusal."""
RESULT_HEAD_CHARACTERS = 4_000
"""Characters that remain of a refused tool result."""
NO_IMAGE = "[A picture was here. It is left out: the model service refuses it, or there are too many.]"
SHORTENED = "\n[The rest is left out: the model service refused this result. Read it in smaller parts.]"


def find_removable_parts(error: LLMError, request: ModelRequest) -> Iterator[Part]:
    """Yield the parts of the history to leave out, one after another, when retrying a refused request."""
    is_too_large = isinstance(error, ContextOverflowError) and error.status == 413
    is_refused = isinstance(error, LLMRequestError) and error.failure.kind == "bad_request"
    if not (is_too_large or (is_refused and error.status in (0, 400, 413, 415, 422))):
        return
    for part in PARTS:
        if is_too_large and part != "images":
            continue
        if any(hash_parts(message, part) for message in request.messages):
            yield part


def describe_removal(part: Part) -> Text:
    """Return the user notice for a retry without `part`."""
    match part:
        case "images":
            return text("llm.cure.images")
        case "results":
            return text("llm.cure.results")
        case "provider_data":
            return text("llm.cure.provider_data")
        case _:
            assert_never(part)


def remove_part(message: Message, part: Part, drop: Callable[[int], bool] = lambda _: True) -> Message:
    """Return the message with `part` replaced by a note, for keys accepted by `drop`."""
    keys = hash_parts(message, part)
    if not keys or not any(map(drop, keys)):
        return message
    match part, message:
        case "images", UserMessage() | ToolMessage():
            images = tuple(image for image in message.images if not drop(hash_image(image)))
            note = "\n\n".join(filter(None, (message.text, NO_IMAGE)))
            return message.model_copy(update={"images": images, "text": note})
        case "results", ToolMessage():
            return message.model_copy(update={"text": message.text[:RESULT_HEAD_CHARACTERS] + SHORTENED})
        case "provider_data", AssistantMessage():
            own_data = {key: value for key, value in message.opaque.items() if key == OWN_KEY}
            return message.model_copy(update={"opaque": own_data, "thinking": ""})
        case _:
            return message


def remove_refused_parts(message: Message, keys: set[int]) -> Message:
    """Return the message without the parts whose keys are in `keys`."""
    for part in PARTS:
        message = remove_part(message, part, keys.__contains__)
    return message


def hash_image(image: Image) -> int:
    """Return the hash that identifies an image."""
    return hash(image.data)


def hash_parts(message: Message, part: Part) -> list[int]:
    """Return the hashes that identify the occurrences of `part` in the message."""
    match part, message:
        case "images", UserMessage() | ToolMessage():
            return [hash_image(image) for image in message.images]
        case "results", ToolMessage() if len(message.text) > LONG_RESULT:
            return [hash(message.text)]
        case "provider_data", AssistantMessage() if message.thinking or set(message.opaque) - {OWN_KEY}:
            return [hash((message.thinking, json.dumps(message.opaque, sort_keys=True)))]
        case _:
            return []
