"""Token counts estimated from text alone, without a vocabulary: close for code and English, exact enough for Japanese."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import assert_never

from daiku.domain.messages import AssistantMessage, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolSpec
from daiku.texts.rules.patterns import lazy

# One match is about one token of a byte-pair vocabulary of 200,000 entries: a word with the space before
# it, at most three digits, a line end with the indentation behind it, two signs.
_WORDS = r" ?[A-Z]?[a-z]{1,9}|[A-Z]{1,4}|[0-9]{1,3}|\n\s*| {2,}|\t+"
_OTHERS = r"[^\x00-\x7f\u3000-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U00020000-\U0003134f]{1,2}"
_PIECES = lazy(rf"{_WORDS}|[!-/:-@\[-`{{-~]{{1,2}}|{_OTHERS}")
_JSON_PIECES = lazy(rf"{_WORDS}|[!-/:-@\[-`{{-~]{{1,4}}|{_OTHERS}")
"""Of JSON whole runs of its signs are tokens, such as `":{"`."""
_KANA = lazy(r"[\u3000-\u30ff\uff00-\uffef]")
_IDEOGRAPHS = lazy(r"[\u3100-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003134f]")
KANA_WEIGHT = 0.75
IDEOGRAPH_WEIGHT = 1.05

# The vocabularies of these families cut finer than the one that the pattern follows.
_FAMILIES = ((lazy(r"claude-(opus-4-[7-9]|[a-z]+-[5-9])"), 1.35), (lazy(r"claude"), 1.12))

PER_MESSAGE = 4
PER_IMAGE = 1500
"""A screenshot costs 1,000 to 1,600 tokens with the large services."""


def estimate(text: str, model: str = "") -> int:
    """Tokens of `text`; linear, about 45 ms per million characters. `model` chooses the family's factor."""
    return _estimate(_PIECES, text, model)


def estimate_json(text: str, model: str = "") -> int:
    """Tokens of JSON as requests hold it: of tools' schemas, of calls' arguments."""
    return _estimate(_JSON_PIECES, text, model)


def _estimate(pieces: re.Pattern[str], text: str, model: str) -> int:
    count = float(len(pieces.findall(text)))
    if not text.isascii():
        count += KANA_WEIGHT * len(_KANA.findall(text)) + IDEOGRAPH_WEIGHT * len(_IDEOGRAPHS.findall(text))
    return int(count * _factor(model) + 0.5)


def _factor(model: str) -> float:
    return next((factor for pattern, factor in _FAMILIES if pattern.search(model)), 1.0)


def estimate_message(message: Message, model: str = "") -> int:
    """Tokens of one message, its calls and pictures included."""
    match message:
        case UserMessage(text=text, images=images):
            return estimate(text, model) + PER_IMAGE * len(images) + PER_MESSAGE
        case AssistantMessage(text=text, thinking=thinking, calls=calls):
            called = sum(
                estimate_json(c.tool + (c.malformed or _json(c.args)), model) + PER_MESSAGE for c in calls
            )
            return estimate(text, model) + estimate(thinking, model) + called + PER_MESSAGE
        case ToolMessage(text=text, images=images):
            return estimate(text, model) + PER_IMAGE * len(images) + PER_MESSAGE
        case _:
            assert_never(message)


def estimate_messages(messages: Iterable[Message], model: str = "") -> int:
    """Tokens of a conversation."""
    return sum(estimate_message(message, model) for message in messages)


def estimate_tools(tools: Iterable[ToolSpec], model: str = "") -> int:
    """Tokens that the tools' names, descriptions and schemas take."""
    return sum(
        estimate(t.name + t.description, model) + estimate_json(_json(t.parameters), model) + PER_MESSAGE
        for t in tools
    )


def estimate_request(request: ModelRequest) -> int:
    """Tokens of everything that a request sends."""
    return (
        estimate(request.system, request.model)
        + estimate_tools(request.tools, request.model)
        + estimate_messages(request.messages, request.model)
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
