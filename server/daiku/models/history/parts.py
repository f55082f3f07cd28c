"""Parts of a history that a service may refuse: pictures, long results, provider data; and messages without them."""

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
"""What can be taken out of a history: pictures, long tool results, data that only the provider understands."""
PARTS: tuple[Part, ...] = ("images", "results", "provider_data")
LONG_RESULT = 16_000
"""Characters from which on a tool result may be the reason for a refusal."""
KEPT_OF_RESULT = 4_000
"""Characters that are kept of a result that was refused."""
NO_IMAGE = "[A picture was here. It is left out: the model service refuses it, or there are too many.]"
SHORTENED = "\n[The rest is left out: the model service refused this result. Read it in smaller parts.]"


def parts_to_try(error: LLMError, request: ModelRequest) -> Iterator[Part]:
    """Yield the parts of the history without which a refused request is tried."""
    too_large = isinstance(error, ContextOverflowError) and error.status == 413
    refused = isinstance(error, LLMRequestError) and error.failure.kind == "bad_request"
    if not (too_large or (refused and error.status in (0, 400, 413, 415, 422))):
        return
    for part in PARTS:
        if too_large and part != "images":
            continue
        if any(keys_of(message, part) for message in request.messages):
            yield part


def notice_of(part: Part) -> Text:
    """Return what the person is told when a request is tried without `part`."""
    match part:
        case "images":
            return text("llm.cure.images")
        case "results":
            return text("llm.cure.results")
        case "provider_data":
            return text("llm.cure.provider_data")
        case _:
            assert_never(part)


def without_part(message: Message, part: Part, drop: Callable[[int], bool] = lambda _: True) -> Message:
    """Return the message without `part`, and with a sentence in its place."""
    keys = keys_of(message, part)
    if not keys or not any(map(drop, keys)):
        return message
    match part, message:
        case "images", UserMessage() | ToolMessage():
            images = tuple(image for image in message.images if not drop(key_of(image)))
            note = "\n\n".join(filter(None, (message.text, NO_IMAGE)))
            return message.model_copy(update={"images": images, "text": note})
        case "results", ToolMessage():
            return message.model_copy(update={"text": message.text[:KEPT_OF_RESULT] + SHORTENED})
        case "provider_data", AssistantMessage():
            own = {key: value for key, value in message.opaque.items() if key == OWN_KEY}
            return message.model_copy(update={"opaque": own, "thinking": ""})
        case _:
            return message


def without_known(message: Message, keys: set[int]) -> Message:
    for part in PARTS:
        message = without_part(message, part, keys.__contains__)
    return message


def key_of(image: Image) -> int:
    """Return what identifies the picture."""
    return hash(image.data)


def keys_of(message: Message, part: Part) -> list[int]:
    """Return what identifies the occurrences of `part` in the message."""
    match part, message:
        case "images", UserMessage() | ToolMessage():
            return [key_of(image) for image in message.images]
        case "results", ToolMessage() if len(message.text) > LONG_RESULT:
            return [hash(message.text)]
        case "provider_data", AssistantMessage() if message.thinking or set(message.opaque) - {OWN_KEY}:
            return [hash((message.thinking, json.dumps(message.opaque, sort_keys=True)))]
        case _:
            return []
