"""Message histories as services accept them: one result per call, unique ids, each message encoded once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar, assert_never

from daiku.dataclass import dataclass, field
from daiku.domain.messages import AssistantMessage, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.run.rules.calls.toolnames import wire_name

UNANSWERED = "There is no result: the call was interrupted before it ended."
"""Result text for a call without a result."""
_ILLEGAL_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
MAX_ID_LENGTH = 64


@dataclass(slots=True)
class CallPairing:
    """Converter for the messages of a conversation, in order, that pairs calls with results.

    Services reject a call without its result, a result without its call, and duplicate ids. All three occur: after an
    interruption, after a compaction, and with servers that restart numbering calls.
    """

    _open: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _used: set[str] = field(default_factory=set[str])

    def convert(self, message: Message) -> list[Message]:
        """Return the messages to send for `message`, with results added for calls left open before it."""
        match message:
            case AssistantMessage():
                return [*self.close(), self._with_open_calls(message)]
            case ToolMessage():
                call = self._open.pop(message.call_id, None)
                if call is None:
                    return [*self.close(), _as_user_message(message)]
                return [message if call.id == message.call_id else _with_call_id(message, call.id)]
            case UserMessage():
                return [*self.close(), message]
            case _:
                assert_never(message)

    def create_placeholders(self) -> list[Message]:
        """Return placeholder results for the open calls, without closing them."""
        return [
            ToolMessage(call_id=call.id, tool=call.tool, ok=False, text=UNANSWERED)
            for call in self._open.values()
        ]

    def close(self) -> list[Message]:
        """Close the open calls and return placeholder results for them."""
        answers = self.create_placeholders()
        self._open.clear()
        return answers

    def _with_open_calls(self, message: AssistantMessage) -> AssistantMessage:
        calls = tuple(self._with_unique_id(call) for call in message.calls)
        if all(new is old for new, old in zip(calls, message.calls, strict=True)):
            return message
        return message.model_copy(update={"calls": calls})

    def _with_unique_id(self, call: ToolCall) -> ToolCall:
        base = _ILLEGAL_IN_ID.sub("_", call.id)[:MAX_ID_LENGTH] or "call"
        name, number = base, 1
        while name in self._used:
            number += 1
            name = f"{base[: MAX_ID_LENGTH - 8]}_{number}"
        self._used.add(name)
        renamed = call if name == call.id else call.model_copy(update={"id": name})
        self._open[call.id] = renamed
        return renamed


def _with_call_id(message: ToolMessage, call_id: str) -> ToolMessage:
    return message.model_copy(update={"call_id": call_id})


def _as_user_message(message: ToolMessage) -> UserMessage:
    return UserMessage(text=f"Result of {wire_name(message.tool)}:\n{message.text}", images=message.images)


T = TypeVar("T")


class History(Generic[T]):
    """Encoded form of the messages of one conversation, extended incrementally.

    `encode` is called once per message, in order, with the encoded messages before it.
    """

    __slots__ = ("_encode", "_encoded", "_messages", "_pairing")

    def __init__(self, encode: Callable[[Message, list[T]], T]) -> None:
        self._encode = encode
        self._reset()

    def _reset(self) -> None:
        self._pairing = CallPairing()
        self._messages: tuple[Message, ...] = ()
        self._encoded: list[T] = []

    def encode(self, messages: tuple[Message, ...]) -> list[T]:
        """Return all of `messages` encoded. Placeholder results for open calls at the end are not stored."""
        encoded_count = len(self._messages)
        if self._messages != messages[:encoded_count]:  # compares identities first, so no text is compared
            self._reset()
            encoded_count = 0
        for message in messages[encoded_count:]:
            for sendable in self._pairing.convert(message):
                self._encoded.append(self._encode(sendable, self._encoded))
        self._messages = messages
        encoded = list(self._encoded)
        for answer in self._pairing.create_placeholders():
            encoded.append(self._encode(answer, encoded))
        return encoded


@dataclass(slots=True)
class Histories(Generic[T]):
    """Cache of the most recently used histories by session, model, and refused features."""

    make: Callable[[ModelRequest], History[T]]
    limit: int = 16
    _stored: OrderedDict[tuple[str, str, frozenset[str]], History[T]] = field(
        default_factory=OrderedDict[tuple[str, str, frozenset[str]], History[T]]
    )

    def of(self, request: ModelRequest) -> History[T]:
        """Return the history of the request's session; a new one for a request without a session."""
        if not request.session:
            return self.make(request)
        key = (request.session, request.model, request.refused)
        history = self._stored.get(key)
        if history is None:
            history = self._stored[key] = self.make(request)
            if len(self._stored) > self.limit:
                self._stored.popitem(last=False)
        self._stored.move_to_end(key)
        return history


def join_arrays(opening: bytes, arrays: Iterable[tuple[bytes, list[bytes]]], closing: bytes) -> list[bytes]:
    """Return the pieces of `[head + items + closing, …]` with commas between them.

    They are joined once with the rest of the body, because copying a long conversation dominates the cost of building
    a request.
    """
    pieces: list[bytes] = []
    comma = opening
    for head, items in arrays:
        pieces += (comma, head)
        for item in items:
            pieces += (item, b",")
        pieces[-1] = closing
        comma = b","
    return pieces


V = TypeVar("V")


class LastResult(Generic[V, T]):
    """Cache of `make`'s result for the last value, as the tools are the same in nearly every request."""

    __slots__ = ("_make", "_stored")

    def __init__(self, make: Callable[[V], T]) -> None:
        self._make = make
        self._stored: tuple[V, T] | None = None

    def of(self, value: V) -> T:
        if self._stored is None or self._stored[0] is not value:
            self._stored = (value, self._make(value))
        return self._stored[1]
