"""Every provider with a service that streams given pieces of text, each in its own protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from daiku.domain.config import ProviderSettings
from daiku.models.adapter import LLMAdapter
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from tests.llm.server import Answer, ModelServer, document, events
from tests.llm.talk import KEY


@dataclass(frozen=True)
class Door:
    """A provider, the model to ask, the path it asks at, and its form of a streamed text."""

    provider: str
    model: str
    path: str
    says: Callable[[Sequence[str], str], Answer]
    api: str = "auto"

    def __str__(self) -> str:
        return f"{self.provider}-{self.api}"

    def open(self, server: ModelServer, **more: Any) -> tuple[Models, LLMAdapter]:
        """The provider at `server`; `more` are settings of it."""
        root = "" if self.provider in ("anthropic", "gemini", "ollama") else "/v1"
        own = ProviderSettings.model_validate(
            {"base_url": server.url + root, "api_key": SecretStr(KEY), "api": self.api, **more}
        )
        fields: dict[str, Any] = {"model": f"{self.provider}/{self.model}", self.provider: own}
        if self.provider == "ollama":
            shown = {"model_info": {"a.context_length": 30_000}, "capabilities": ["completion", "tools"]}
            server.answer("/api/show", document(shown))
        models = Models(LLMSettings.model_validate(fields))
        return models, models.resolve()


def _chat(pieces: Sequence[str], finish: str) -> Answer:
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return events(*deltas, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, done=True)


def _responses(pieces: Sequence[str], finish: str) -> Answer:
    text = "".join(pieces)
    item = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    kind = "completed" if finish == "stop" else "incomplete"
    return events(
        *({"type": "response.output_text.delta", "delta": piece} for piece in pieces),
        {"type": f"response.{kind}", "response": {"status": kind, "output": [item], "usage": {}}},
    )


def _anthropic(pieces: Sequence[str], finish: str) -> Answer:
    reason = "end_turn" if finish == "stop" else "max_tokens"
    return events(
        {
            "type": "message_start",
            "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


def _gemini(pieces: Sequence[str], finish: str) -> Answer:
    def chunk(text: str, **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, **more}]}

    return events(*map(chunk, pieces), chunk("", finishReason="STOP" if finish == "stop" else "MAX_TOKENS"))


def _ollama(pieces: Sequence[str], finish: str) -> Answer:
    lines = [{"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces]
    last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": finish}
    return Answer([json.dumps(line).encode() + b"\n" for line in (*lines, last)])


CHAT = "/v1/chat/completions"
DOORS = (
    Door("compatible", "m", CHAT, _chat),
    Door("lmstudio", "m", CHAT, _chat),
    Door("openai", "m", CHAT, _chat),
    Door("openai", "m", "/v1/responses", _responses, "responses"),
    Door("ollama", "m", "/api/chat", _ollama),
    Door("anthropic", "claude-x", "/v1/messages", _anthropic),
    Door("gemini", "gemini-x", "/v1beta/models/gemini-x:streamGenerateContent", _gemini),
)
