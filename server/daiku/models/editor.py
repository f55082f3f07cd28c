"""The `editor` provider: models that the editor offers through vscode.lm, without an API key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import assert_never

from pydantic import JsonValue

from daiku.domain.base import JsonObject, long_id
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMError, LLMRequestError
from daiku.domain.messages import (
    AssistantMessage,
    Image,
    Message,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.catalogue import build_model_info
from daiku.models.tokens import estimate, estimate_request
from daiku.models.transport.client_errors import from_exception
from daiku.models.transport.failures import silence_error
from daiku.models.transport.history import Histories, History
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SurrogateReplacer, replace_surrogates
from daiku.models.transport.wire import to_count
from daiku.run.rules.calls.toolnames import NameMap, wire_name
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import Text, text


class EditorProvider:
    """Provider that sends requests through the editor, which handles keys, limits, and billing.

    Token counts are estimated if the editor does not report them.
    """

    name = "editor"

    def __init__(self, service: Service, settings: ProviderSettings, bridge: LanguageModelBridge) -> None:
        self._settings = settings
        self._bridge = bridge
        self._service = service
        self._histories = Histories[JsonObject](_new_history)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        messages = _merge_messages(self._histories.of(request).encode(request.messages))
        if request.system.strip():
            messages.insert(0, {"role": "system", "parts": [_text(request.system)]})
        parts: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        model = request.model or await self._find_first_model()
        task = asyncio.create_task(
            self._bridge.request(model, messages, list(map(_encode_tool, request.tools)), parts.put_nowait)
        )
        task.add_done_callback(lambda _: parts.put_nowait(None))
        menders = {"text": SurrogateReplacer(), "thinking": SurrogateReplacer()}
        limit = self._settings.first_token_seconds
        try:
            while True:
                async with asyncio.timeout(limit):
                    part = await parts.get()
                if part is None:
                    break
                limit = self._settings.idle_seconds
                if (event := _decode_event(part, menders)) is not None:
                    yield event
            yield _decode_reply(request, model, await task)
        except LLMError:
            raise
        except TimeoutError as error:
            raise silence_error(self._service, limit) from error
        except Exception as error:  # the bridge's own errors; all become LLMError here
            raise from_exception(self._service, error) from error
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def models(self) -> tuple[ModelInfo, ...]:
        try:
            listed = await self._bridge.list_models()
        except LLMError:
            raise
        except Exception as error:  # the bridge's own errors; all become LLMError here
            raise from_exception(self._service, error) from error
        return tuple(_decode_info(model) for model in listed if isinstance(model.get("id"), str))

    async def _find_first_model(self) -> str:
        """Return the editor's first model with tools, else its first model. Raises LLMRequestError."""
        models = await self.models()
        if not models:
            raise LLMRequestError(
                Failure(
                    kind="no_provider",
                    message=text("llm.editor_has_none"),
                    hint=text("llm.key_server_or_sign_in"),
                )
            )
        return next((model.name for model in models if model.tools), models[0].name)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def aclose(self) -> None:
        """Do nothing: this provider holds no connection."""


def _new_history(_request: ModelRequest) -> History[JsonObject]:
    def encode(message: Message, _before: list[JsonObject]) -> JsonObject:
        match message:
            case UserMessage():
                return _build_message("user", [*map(_image_part, message.images), *_text_parts(message.text)])
            case ToolMessage():
                text = message.text if message.ok else f"Failed: {message.text}"
                result: JsonObject = {
                    "type": "result",
                    "callId": message.call_id,
                    "text": replace_surrogates(text),
                }
                return _build_message("user", [result, *map(_image_part, message.images)])
            case AssistantMessage():
                return _build_message(
                    "assistant", [*_text_parts(message.text), *map(_call_part, message.calls)]
                )
            case _:
                assert_never(message)

    return History(encode)


def _build_message(role: str, parts: list[JsonObject]) -> JsonObject:
    values: list[JsonValue] = [*parts]
    return {"role": role, "parts": values}


def _merge_messages(messages: list[JsonObject]) -> list[JsonObject]:
    """Merge consecutive messages of one role, as results of one reply's calls need it. Drop empty messages."""
    merged: list[JsonObject] = []
    for message in messages:
        parts = message["parts"]
        last = merged[-1] if merged else None
        if not isinstance(parts, list) or not parts:
            continue
        if (
            last is not None
            and last["role"] == message["role"]
            and isinstance(earlier := last["parts"], list)
        ):
            merged[-1] = {"role": last["role"], "parts": [*earlier, *parts]}
        else:
            merged.append(message)
    return merged


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": replace_surrogates(text)}


def _text_parts(text: str) -> list[JsonObject]:
    return [_text(text)] if text else []


def _image_part(image: Image) -> JsonObject:
    return {"type": "image", "mediaType": image.media_type, "data": image.data}


def _call_part(call: ToolCall) -> JsonObject:
    args: JsonObject = call.args if call.malformed is None else {"malformed_arguments": call.malformed}
    return {"type": "call", "callId": call.id, "name": wire_name(call.tool), "input": args}


def _encode_tool(tool: ToolSpec) -> JsonObject:
    return {"name": wire_name(tool.name), "description": tool.description, "inputSchema": tool.parameters}


def _decode_event(part: JsonObject, menders: dict[str, SurrogateReplacer]) -> ModelEvent | None:
    kind, text = part.get("type"), part.get("text")
    if not isinstance(kind, str) or kind not in menders or not isinstance(text, str):
        return None
    text = menders[kind].feed(text)
    if not text:
        return None
    return TextDelta(text) if kind == "text" else ThinkingDelta(text)


def _decode_reply(request: ModelRequest, model: str, result: JsonObject) -> Reply:
    texts: dict[str, list[str]] = {"text": [], "thinking": []}
    calls: list[ToolCall] = []
    names = NameMap(request.tools)
    parts = result.get("parts")
    for part in parts if isinstance(parts, list) else []:
        match part:
            case {"type": ("text" | "thinking") as kind, "text": str(piece)}:
                texts[kind].append(piece)
            case {"type": "call", "name": str(name), "input": input_}:
                call_id = part.get("callId")
                calls.append(
                    ToolCall(
                        id=call_id if isinstance(call_id, str) and call_id else long_id("call"),
                        tool=names.to_name(name),
                        args=input_ if isinstance(input_, dict) else {},
                    )
                )
            case _:
                pass
    reply_text, thinking = (
        Text(replace_surrogates("".join(texts["text"]))),
        replace_surrogates("".join(texts["thinking"])),
    )
    counted_text = reply_text + thinking + "".join(f"{call.tool} {call.args}" for call in calls)
    usage = Usage(
        model=model,
        prompt_tokens=to_count(result.get("promptTokens")) or estimate_request(request),
        completion_tokens=to_count(result.get("completionTokens")) or estimate(counted_text, model),
    )
    message = AssistantMessage(text=reply_text, thinking=thinking, calls=tuple(calls))
    return Reply(message, usage, "tool_calls" if calls else "stop")


def _decode_info(model: JsonObject) -> ModelInfo:
    known = build_model_info("editor", str(model["id"]), context=to_count(model.get("context")))
    return known.model_copy(
        update={
            "tools": model.get("tools") is not False,
            "images": model.get("images") is True,
            "trait": Text(
                " · ".join(
                    part for key in ("name", "vendor") if isinstance(part := model.get(key), str) and part
                )
            ),
        }
    )
