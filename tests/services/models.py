"""A model service on loopback that plays one script in six protocols: what differs is only the wire.

Which reply is due follows from how many replies the request already holds, so a resumed run goes on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "ollama", "lmstudio"]
PROTOCOLS: tuple[Protocol, ...] = (
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "ollama",
    "lmstudio",
)
Json = dict[str, Any]
MODEL = "carpenter-1"
PROMPT_TOKENS, COMPLETION_TOKENS, CACHED_TOKENS = 40, 7, 0


@dataclass(frozen=True)
class Said:
    """One reply: pieces of text, then calls as (wire name, arguments)."""

    pieces: Sequence[str] = ()
    calls: Sequence[tuple[str, Json]] = ()


Script = Sequence[Said] | Callable[[list[Json]], Said]
"""The replies in their order, or who decides on each from the messages of the request."""


@dataclass
class Service:
    """Where the service listens, and what it was asked."""

    port: int
    requests: list[Json] = field(default_factory=list[Json])

    def environment(self, protocol: Protocol) -> dict[str, str]:
        """The usual variables that point `daiku` at this service."""
        base = f"http://127.0.0.1:{self.port}"
        match protocol:
            case "openai-chat":
                return {
                    "OPENAI_API_KEY": "sk-test-000000000000000000000000",
                    "OPENAI_BASE_URL": f"{base}/v1",
                    "DAIKU_LLM__OPENAI__API": "chat",
                    "DAIKU_LLM__MODEL": f"openai/{MODEL}",
                }
            case "openai-responses":
                return {
                    "OPENAI_API_KEY": "sk-test-000000000000000000000000",
                    "OPENAI_BASE_URL": f"{base}/v1",
                    "DAIKU_LLM__OPENAI__API": "responses",
                    "DAIKU_LLM__MODEL": f"openai/{MODEL}",
                }
            case "anthropic":
                return {
                    "ANTHROPIC_API_KEY": "sk-ant-test-0000000000000000",
                    "ANTHROPIC_BASE_URL": base,
                    "DAIKU_LLM__MODEL": f"anthropic/{MODEL}",
                }
            case "gemini":
                return {
                    "GEMINI_API_KEY": "test-0000000000000000",
                    "GEMINI_BASE_URL": base,
                    "DAIKU_LLM__MODEL": f"gemini/{MODEL}",
                }
            case "ollama":
                return {"OLLAMA_HOST": f"127.0.0.1:{self.port}", "DAIKU_LLM__MODEL": f"ollama/{MODEL}"}
            case "lmstudio":
                return {"LMSTUDIO_BASE_URL": f"{base}/v1", "DAIKU_LLM__MODEL": f"lmstudio/{MODEL}"}


@asynccontextmanager
async def serving(script: Script, port: int = 0) -> AsyncGenerator[Service]:
    """The service, for as long as the block runs."""
    service = Service(port)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                raw = await reader.readexactly(int(fields.get("content-length", "0")))
                body: Json = json.loads(raw) if raw else {}
                method, path, _ = first.split(" ", 2)
                service.requests.append({"method": method, "path": path, "headers": fields, "body": body})
                kind, data = reply(method, path.split("?")[0], body, script)
                status = "200 OK" if data is not None else "404 Not Found"
                out = data if data is not None else b"{}"
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(out)}\r\n\r\n".encode()
                    + out
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, limit=2**24)
    service.port = server.sockets[0].getsockname()[1]
    async with server:
        yield service


def reply(method: str, path: str, body: Json, script: Script) -> tuple[str, bytes | None]:
    """Media type and body of the answer; None: no such address."""
    if path.endswith("/chat/completions"):
        return "text/event-stream", chat(due(script, body["messages"], "assistant"))
    if path.endswith("/responses"):
        return "text/event-stream", responses(due_responses(script, body["input"]))
    if path.endswith("/messages"):
        return "text/event-stream", anthropic(due(script, body["messages"], "assistant"))
    if path.endswith(":streamGenerateContent"):
        return "text/event-stream", gemini(due(script, body["contents"], "model"))
    if path == "/api/chat":
        return "application/x-ndjson", ollama(due(script, body["messages"], "assistant"))
    listed = listing(method, path)
    return "application/json", None if listed is None else json.dumps(listed).encode()


def listing(method: str, path: str) -> Json | None:
    """The services' lists of models."""
    match method, path:
        case "GET", "/v1/models":
            return {
                "object": "list",
                "data": [{"id": MODEL, "object": "model", "type": "model", "display_name": MODEL}],
                "has_more": False,
                "first_id": MODEL,
                "last_id": MODEL,
            }
        case "GET", "/api/v0/models":
            return {"data": [{"id": MODEL, "type": "llm", "max_context_length": 32768}]}
        case "GET", "/v1beta/models":
            return {"models": [{"name": f"models/{MODEL}", "inputTokenLimit": 32768}]}
        case "GET", "/api/tags":
            return {"models": [{"name": MODEL, "model": MODEL}]}
        case "GET", "/api/version":
            return {"version": "0.12.0"}
        case "POST", "/api/show":
            return {
                "capabilities": ["completion", "tools"],
                "model_info": {"general.architecture": "x", "x.context_length": 32768},
            }
        case _:
            return None


def due(script: Script, messages: list[Json], role: str) -> tuple[int, Said]:
    """The next reply: as many as there are replies in the request came before it."""
    index = sum(m.get("role") == role for m in messages)
    return index, script(messages) if callable(script) else script[min(index, len(script) - 1)]


def due_responses(script: Script, items: list[Json]) -> tuple[int, Said]:
    """In the Responses API a reply is a run of items that the model made."""
    made = [i.get("role") == "assistant" or i.get("type") in ("function_call", "reasoning") for i in items]
    index = sum(mine and not before for before, mine in zip([False, *made], made, strict=False))
    return index, script(items) if callable(script) else script[min(index, len(script) - 1)]


def sse(events: Sequence[Json], named: bool = False) -> bytes:
    lines = [
        (f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e, ensure_ascii=False)}\n\n"
        for e in events
    ]
    return "".join(lines).encode()


def chat(turn: tuple[int, Said]) -> bytes:
    index, said = turn
    base = {"id": f"chatcmpl-{index}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": p}) for p in said.pieces)]
    for place, (name, arguments) in enumerate(said.calls):
        text = json.dumps(arguments, ensure_ascii=False)
        function: Json = {"name": name, "arguments": ""}
        call = {"index": place, "id": f"call_{index}_{place}", "type": "function", "function": function}
        events.append(chunk({"tool_calls": [call]}))
        events += [
            chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
            for piece in (text[:5], text[5:])
        ]
    events.append(chunk({}, "tool_calls" if said.calls else "stop"))
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": COMPLETION_TOKENS,
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    }
    return sse([*events, {**base, "choices": [], "usage": usage}]) + b"data: [DONE]\n\n"


def responses(turn: tuple[int, Said]) -> bytes:
    index, said = turn
    events: list[Json] = [
        {"type": "response.created", "response": {"id": f"resp_{index}", "status": "in_progress"}}
    ]
    output: list[Json] = []
    if said.pieces:
        item = {"type": "message", "id": f"msg_{index}", "role": "assistant", "status": "completed"}
        place = len(output)
        events.append(
            {"type": "response.output_item.added", "output_index": place, "item": {**item, "content": []}}
        )
        events += [
            {
                "type": "response.output_text.delta",
                "output_index": place,
                "content_index": 0,
                "item_id": item["id"],
                "delta": piece,
            }
            for piece in said.pieces
        ]
        whole = {
            **item,
            "content": [{"type": "output_text", "text": "".join(said.pieces), "annotations": []}],
        }
        events.append({"type": "response.output_item.done", "output_index": place, "item": whole})
        output.append(whole)
    for number, (name, arguments) in enumerate(said.calls):
        place, text = len(output), json.dumps(arguments, ensure_ascii=False)
        call = {
            "type": "function_call",
            "id": f"fc_{index}_{number}",
            "call_id": f"call_{index}_{number}",
            "name": name,
            "arguments": "",
            "status": "in_progress",
        }
        events.append({"type": "response.output_item.added", "output_index": place, "item": call})
        events.append(
            {
                "type": "response.function_call_arguments.delta",
                "output_index": place,
                "item_id": call["id"],
                "delta": text,
            }
        )
        done = {**call, "arguments": text, "status": "completed"}
        events.append({"type": "response.output_item.done", "output_index": place, "item": done})
        output.append(done)
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "output_tokens": COMPLETION_TOKENS,
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    final = {"id": f"resp_{index}", "status": "completed", "output": output, "usage": usage, "model": MODEL}
    events.append({"type": "response.completed", "response": final})
    return sse([{**e, "sequence_number": n} for n, e in enumerate(events)], named=True)


def anthropic(turn: tuple[int, Said]) -> bytes:
    index, said = turn
    usage = {
        "input_tokens": PROMPT_TOKENS - CACHED_TOKENS,
        "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {
        "id": f"msg_{index}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": MODEL,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[Json] = [{"type": "message_start", "message": message}]
    place = 0
    if said.pieces:
        events.append(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        )
        events += [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in said.pieces
        ]
        events.append({"type": "content_block_stop", "index": 0})
        place = 1
    for number, (name, arguments) in enumerate(said.calls):
        at = place + number
        block: Json = {"type": "tool_use", "id": f"toolu_{index}_{number}", "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        text = json.dumps(arguments, ensure_ascii=False)
        for piece in (text[:5], text[5:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    reason = "tool_use" if said.calls else "end_turn"
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": COMPLETION_TOKENS},
        }
    )
    return sse([*events, {"type": "message_stop"}], named=True)


def gemini(turn: tuple[int, Said]) -> bytes:
    _, said = turn
    parts: list[list[Json]] = [[{"text": p}] for p in said.pieces]
    parts += [[{"functionCall": {"name": name, "args": arguments}}] for name, arguments in said.calls]
    usage = {
        "promptTokenCount": PROMPT_TOKENS,
        "candidatesTokenCount": COMPLETION_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "totalTokenCount": PROMPT_TOKENS + COMPLETION_TOKENS,
    }
    events: list[Json] = [
        {"candidates": [{"content": {"role": "model", "parts": p}, "index": 0}]} for p in parts
    ]
    last = {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}]}
    return sse([*events, {**last, "usageMetadata": usage, "modelVersion": MODEL}])


def ollama(turn: tuple[int, Said]) -> bytes:
    _, said = turn
    lines: list[Json] = [{"message": {"role": "assistant", "content": p}, "done": False} for p in said.pieces]
    if said.calls:
        calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in said.calls]
        lines.append({"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False})
    lines.append(
        {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": PROMPT_TOKENS,
            "eval_count": COMPLETION_TOKENS,
        }
    )
    return "".join(json.dumps({"model": MODEL, "created_at": "", **line}) + "\n" for line in lines).encode()
