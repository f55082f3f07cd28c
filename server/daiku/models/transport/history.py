"""A conversation in the form that services accept: each call has one result, ids are unique, messages are encoded once."""

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
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
ID_LENGTH = 64


@dataclass(slots=True)
class CallPairing:
    """Goes through a conversation once and hands out what can be sent of each message.

    Services refuse a call without its result, a result without its call and an id that comes twice;
    all three happen: after an interruption, after a compaction, with servers that count calls anew.
    """

    _open: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _used: set[str] = field(default_factory=set[str])

    def take(self, message: Message) -> list[Message]:
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

    def unanswered(self) -> list[Message]:
        """Return placeholder results for the open calls, without closing them."""
        return [
            ToolMessage(call_id=call.id, tool=call.tool, ok=False, text=UNANSWERED)
            for call in self._open.values()
        ]

    def close(self) -> list[Message]:
        answers = self.unanswered()
        self._open.clear()
        return answers

    def _with_open_calls(self, message: AssistantMessage) -> AssistantMessage:
        calls = tuple(self._with_unique_id(call) for call in message.calls)
        if all(new is old for new, old in zip(calls, message.calls, strict=True)):
            return message
        return message.model_copy(update={"calls": calls})

    def _with_unique_id(self, call: ToolCall) -> ToolCall:
        plain = _FOREIGN.sub("_", call.id)[:ID_LENGTH] or "call"
        name, number = plain, 1
        while name in self._used:
            number += 1
            name = f"{plain[: ID_LENGTH - 8]}_{number}"
        self._used.add(name)
        named = call if name == call.id else call.model_copy(update={"id": name})
        self._open[call.id] = named
        return named


def _with_call_id(message: ToolMessage, call_id: str) -> ToolMessage:
    return message.model_copy(update={"call_id": call_id})


def _as_user_message(message: ToolMessage) -> UserMessage:
    return UserMessage(text=f"Result of {wire_name(message.tool)}:\n{message.text}", images=message.images)


T = TypeVar("T")


class History(Generic[T]):
    """Keeps the encoded form of the messages of one conversation and adds what is new to it.

    `encode` is called once for each message, in order, with what came of the ones before it.
    """

    __slots__ = ("_encode", "_encoded", "_pairing", "_seen")

    def __init__(self, encode: Callable[[Message, list[T]], T]) -> None:
        self._encode = encode
        self._begin()

    def _begin(self) -> None:
        self._pairing = CallPairing()
        self._seen: tuple[Message, ...] = ()
        self._encoded: list[T] = []

    def encode(self, messages: tuple[Message, ...]) -> list[T]:
        """All of `messages`, encoded; answers to open calls at the end are added but not kept."""
        known = len(self._seen)
        if self._seen != messages[:known]:  # compares identities first: no text is looked at
            self._begin()
            known = 0
        for message in messages[known:]:
            for sendable in self._pairing.take(message):
                self._encoded.append(self._encode(sendable, self._encoded))
        self._seen = messages
        encoded = list(self._encoded)
        for answer in self._pairing.unanswered():
            encoded.append(self._encode(answer, encoded))
        return encoded


@dataclass(slots=True)
class Histories(Generic[T]):
    """The histories of the sessions that were used last, by session, model, and what the service refused."""

    make: Callable[[ModelRequest], History[T]]
    limit: int = 16
    _kept: OrderedDict[tuple[str, str, frozenset[str]], History[T]] = field(
        default_factory=OrderedDict[tuple[str, str, frozenset[str]], History[T]]
    )

    def of(self, request: ModelRequest) -> History[T]:
        """The history of the request's session; a new one for a request without a session."""
        if not request.session:
            return self.make(request)
        key = (request.session, request.model, request.refused)
        history = self._kept.get(key)
        if history is None:
            history = self._kept[key] = self.make(request)
            if len(self._kept) > self.limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return history


def splice(opening: bytes, arrays: Iterable[tuple[bytes, list[bytes]]], closing: bytes) -> list[bytes]:
    """The pieces of `[head + items + closing, …]` with the commas between: joined once with the rest of
    a body, because copying a long conversation is most of what building a request costs."""
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
    """Keeps what `make` made of the last value: the tools are the same in nearly every request."""

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[V], T]) -> None:
        self._make = make
        self._kept: tuple[V, T] | None = None

    def of(self, value: V) -> T:
        if self._kept is None or self._kept[0] is not value:
            self._kept = (value, self._make(value))
        return self._kept[1]
