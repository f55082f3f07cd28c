"""The recorded exchanges with model services, and which decoder reads which protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daiku.domain.messages import ModelEvent, Reply, TextDelta, ThinkingDelta
from daiku.models.anthropic.decode import AnthropicDecoder
from daiku.models.gemini.provider import GeminiDecoder
from daiku.models.ollama.provider import OllamaDecoder
from daiku.models.openai.chat import ChatDecoder
from daiku.models.openai.responses import ResponsesDecoder
from daiku.models.transport.service import Service
from daiku.models.transport.wire import Decoder
from daiku.run.rules.calls.toolnames import NameMap
from tests.conftest import CORPORA

LLM = CORPORA / "llm"
SERVICE = Service(name="recorded", label="The service")


class AsRecorded(NameMap):
    """The recorded tools have names of their own, which are no wire names of ours."""

    def to_name(self, wire: str) -> str:
        return wire


NAMES = AsRecorded()

PROTOCOLS: dict[str, Callable[[], Decoder]] = {
    "anthropic": lambda: AnthropicDecoder(SERVICE, names=NAMES),
    "gemini": lambda: GeminiDecoder(SERVICE, names=NAMES),
    "ollama": lambda: OllamaDecoder(SERVICE, names=NAMES),
    "openai-chat": lambda: ChatDecoder(SERVICE, NAMES),
    "openai-responses": lambda: ResponsesDecoder(SERVICE, NAMES),
}


_CLOSING = re.compile(rb'"type": ?"response\.completed"|"finish_reason": ?"')


@dataclass(frozen=True)
class Record:
    """One recorded exchange."""

    id: str
    protocol: str
    kinds: frozenset[str]
    status: int
    headers: dict[str, str]
    body: bytes
    expected: dict[str, Any]

    @property
    def fails(self) -> bool:
        return self.expected.get("error") is not None

    @property
    def first_end(self) -> int:
        """Where the first closing event begins in a recording that runs several replies together (a
        gateway's steps, several choices); the length of the body in all others."""
        ends = [found.start() for found in _CLOSING.finditer(self.body)]
        return ends[0] if len(ends) > 1 else len(self.body)

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Names and arguments of the expected calls; what has no name is no call."""
        return [(call["name"], call["arguments"]) for call in self.expected["tool_calls"] if call["name"]]

    def decoder(self) -> Decoder:
        return PROTOCOLS[self.protocol]()


def files(kind: str) -> list[str]:
    """`vendor/protocol` of every file of `stream`, `json` or `error` records."""
    return sorted(
        str(path.relative_to(LLM)).removesuffix(f".{kind}.jsonl") for path in LLM.glob(f"*/*.{kind}.jsonl")
    )


def records(name: str, kind: str) -> Iterator[Record]:
    for line in Path(LLM / f"{name}.{kind}.jsonl").read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        body = raw["response"]["body"]
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        yield Record(
            id=raw["id"],
            protocol=raw["protocol"],
            kinds=frozenset(raw["kinds"]),
            status=raw["response"]["status"],
            headers={k.lower(): v for k, v in raw["response"]["headers"].items()},
            body=text.encode(),
            expected=raw["expected"],
        )


@dataclass
class Heard:
    """What a decoder gave: the deltas joined, and the reply."""

    text: str
    thinking: str
    reply: Reply

    @property
    def calls(self) -> list[tuple[str, Any]]:
        return [
            (call.tool, call.args if call.malformed is None else {"__unparsed__": call.malformed})
            for call in self.reply.message.calls
        ]


def decode(decoder: Decoder, pieces: Iterator[bytes] | list[bytes]) -> Heard:
    """Feed `pieces` and finish; raises what the decoder raises."""
    news: list[ModelEvent] = []
    for piece in pieces:
        news += decoder.feed(piece)
    reply = decoder.finish()
    return Heard(
        "".join(e.text for e in news if isinstance(e, TextDelta)),
        "".join(e.text for e in news if isinstance(e, ThinkingDelta)),
        reply,
    )
