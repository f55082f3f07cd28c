"""The `scripted` provider, which replays replies from a file for tests, demos, and recorded runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.errors import (
    ContextOverflowError,
    Failure,
    FailureKind,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
    UsageError,
)
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    Usage,
    UserMessage,
    is_own,
)
from daiku.domain.tools import ToolCall
from daiku.models.tokens import estimate, estimate_request
from daiku.texts.rules.words import streamed_pieces
from daiku.texts.text import NO_TEXT, Text, text

_KANA_OR_KANJI = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
USER_TEXT = "{{user}}"
"""Placeholder for the user's last message in texts and arguments."""


class _ScriptPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptCall(_ScriptPart):
    """Tool call of a scripted reply. `malformed` is argument text that is not a JSON object."""

    tool: str = Field(min_length=1)
    args: dict[str, JsonValue] = {}
    id: str = ""
    reasoning: str | None = None
    malformed: str | None = None


class ScriptError(_ScriptPart):
    """Failure to simulate after the line's text, for the first `times` requests of the line."""

    kind: FailureKind = "timeout"
    message: Text = text("llm.script.says_so")
    hint: Text = NO_TEXT
    status: int = 0
    retry_after: float | None = None
    times: int = Field(1_000_000, ge=1)


class ScriptLine(_ScriptPart):
    """One reply. The line is skipped unless `when` is in the preceding message and `agent` in the system prompt.

    `delay_ms` is the pause in milliseconds before each piece of text.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptCall, ...] = ()
    delay_ms: float = Field(0.0, ge=0)
    usage: Usage | None = None
    finish: FinishReason | None = None
    error: ScriptError | None = None
    when: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """The replies of one file."""

    path: Path
    lines: tuple[ScriptLine, ...]


def read_script(path: Path) -> Script:
    """Read a script file. Raises UsageError that names the invalid line."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = text("llm.script.no_file") if isinstance(error, FileNotFoundError) else str(error)
        raise _usage_error(text("llm.script.unreadable", name=str(path), why=why)) from error
    lines: list[ScriptLine] = []
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("//"):
            try:
                lines.append(ScriptLine.model_validate_json(line))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                location = ".".join(str(part) for part in first["loc"])
                problem = f"{location}: {first['msg']}" if location else first["msg"]
                raise _usage_error(
                    text("llm.script.wrong_line", name=str(path), line=number, what=problem)
                ) from error
    if not lines:
        raise _usage_error(text("llm.script.empty", name=str(path)))
    return Script(path, tuple(lines))


def _usage_error(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=text("llm.script.form")))


def find_next_line(script: Script, system: str, messages: Sequence[Message]) -> int:
    """Return the index of the line that answers `messages`: the first match after the line of the last reply.

    Depends on the messages only, so that a resumed run continues where it stopped.
    """
    position, start = 0, 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if (
            isinstance(message, AssistantMessage)
            and (next_index := _get_next_index(message, script)) is not None
        ):
            position, start = next_index, index + 1
            break
    for index in range(start, len(messages)):
        message = messages[index]
        if isinstance(message, AssistantMessage) and not is_own(message):
            position = _find_line(script, position, system, messages[:index]) + 1
    return _find_line(script, position, system, messages)


def _get_script_name(message: Message) -> JsonValue:
    """Return the name of the script that a reply was played from."""
    own = message.opaque.get("scripted") if isinstance(message, AssistantMessage) else None
    return own.get("script") if isinstance(own, dict) else None


def _get_next_index(message: AssistantMessage, script: Script) -> int | None:
    own = message.opaque.get("scripted")
    if isinstance(own, dict) and own.get("script") == script.path.name:
        position = own.get("next")
        return position if isinstance(position, int) else None
    return None


def _get_own_text(message: Message | None) -> str:
    """Return the text of a message; of a user message only what the user wrote."""
    if message is None:
        return ""
    return message.words if isinstance(message, UserMessage) else message.text


def _find_line(script: Script, start: int, system: str, messages: Sequence[Message]) -> int:
    last = messages[-1] if messages else None
    last_text = _get_own_text(last)
    for index in range(start, len(script.lines)):
        line = script.lines[index]
        if line.when in last_text and line.agent in system:
            return index
    return len(script.lines)


@dataclass(slots=True)
class ScriptedProvider:
    """Provider that plays `scripted/<path>`. A relative path is searched in `folders` in order.

    `demo` is the built-in demonstration; its `.ja` variant is played for users who write Japanese or whose `locale`
    is Japanese. Besides LLMError, raises UsageError for a bad script.
    """

    folders: tuple[Path, ...] = ()
    demo: Path | None = None
    locale: str = "en"
    name: str = "scripted"
    _play_counts: dict[tuple[Path, int], int] = field(default_factory=dict[tuple[Path, int], int])
    _scripts: dict[Path, tuple[int, Script]] = field(default_factory=dict[Path, tuple[int, Script]])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        script = self._load_script(request)
        index = find_next_line(script, request.system, request.messages)
        if index >= len(script.lines):
            message = text("llm.script.at_end", name=script.path.name, count=len(script.lines))
            raise LLMRequestError(Failure(kind="usage", message=message, hint=text("llm.script.play_again")))
        line = script.lines[index]
        user = next((m.words for m in reversed(request.messages) if isinstance(m, UserMessage)), "")
        answer, thinking = line.text.replace(USER_TEXT, user), line.thinking.replace(USER_TEXT, user)
        for piece in streamed_pieces(thinking):
            await asyncio.sleep(line.delay_ms / 1000)
            yield ThinkingDelta(piece)
        for piece in streamed_pieces(answer):
            await asyncio.sleep(line.delay_ms / 1000)
            yield TextDelta(piece)
        if line.error is not None:
            self._raise_error(script, index, line.error)
        yield _build_reply(request, script, index, answer, thinking, user)

    async def models(self) -> tuple[ModelInfo, ...]:
        if self.demo is None or not self.demo.is_file():
            return ()
        return (ModelInfo(provider=self.name, name="demo", trait=text("llm.trait.script")),)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return estimate_request(request)

    async def aclose(self) -> None:
        """Do nothing: this provider holds no connection."""

    def _load_script(self, request: ModelRequest) -> Script:
        path = self._find_script(request.model.removeprefix("scripted/").strip())
        if path == self.demo:
            path = self._localize_demo(path, request.messages)
        try:
            modified = path.stat().st_mtime_ns
        except OSError:
            modified = 0
        cached = self._scripts.get(path)
        if cached is None or cached[0] != modified:
            cached = self._scripts[path] = (modified, read_script(path))
        return cached[1]

    def _find_script(self, name: str) -> Path:
        if name in {"", "demo"} and self.demo is not None:
            return self.demo
        if not name:
            raise _usage_error(text("llm.script.unnamed"))
        path = Path(name).expanduser()
        candidates = (path,) if path.is_absolute() else tuple(folder / path for folder in self.folders)
        return next((c for c in candidates if c.is_file()), candidates[0] if candidates else path)

    def _localize_demo(self, demo: Path, messages: Sequence[Message]) -> Path:
        """Return the demonstration in the user's language. A conversation keeps the language in which it began."""
        japanese = demo.with_suffix(f".ja{demo.suffix}")
        first_script = next(
            (name for m in messages if (name := _get_script_name(m)) in (demo.name, japanese.name)), None
        )
        last_text = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
        is_japanese = _KANA_OR_KANJI.search(last_text) is not None or self.locale.startswith("ja")
        is_japanese = is_japanese if first_script is None else first_script == japanese.name
        return japanese if is_japanese and japanese.is_file() else demo

    def _raise_error(self, script: Script, index: int, error: ScriptError) -> None:
        play_count = self._play_counts.get((script.path, index), 0)
        self._play_counts[script.path, index] = play_count + 1
        if play_count < error.times:
            raise _build_error(error)


_ERRORS: dict[FailureKind, type[LLMError]] = {
    "auth": LLMAuthError,
    "rate_limit": LLMRateLimitError,
    "overloaded": LLMRateLimitError,
    "timeout": LLMTimeoutError,
    "connection": LLMTimeoutError,
    "context_overflow": ContextOverflowError,
    "stream_cut": StreamCutError,
}
_RETRYABLE = {"rate_limit", "overloaded", "timeout", "connection", "stream_cut"}


def _build_error(error: ScriptError) -> LLMError:
    failure = Failure(
        kind=error.kind, message=error.message, hint=error.hint, retryable=error.kind in _RETRYABLE
    )
    kind = _ERRORS.get(error.kind, LLMRequestError)
    return kind(failure, status=error.status, retry_after=error.retry_after)


def _build_reply(
    request: ModelRequest, script: Script, index: int, answer: str, thinking: str, user: str
) -> Reply:
    line = script.lines[index]
    calls = tuple(_build_call(call, user) for call in line.calls)
    counted_text = answer + thinking + "".join(str(call.args) for call in calls)
    usage = line.usage or Usage(
        prompt_tokens=estimate_request(request), completion_tokens=estimate(counted_text), cost=0.0
    )
    own: JsonObject = {"script": script.path.name, "next": index + 1}
    message = AssistantMessage(text=Text(answer), thinking=thinking, calls=calls, opaque={"scripted": own})
    finish: FinishReason = line.finish or ("tool_calls" if calls else "stop")
    name = f"scripted/{request.model.removeprefix('scripted/') or 'demo'}"
    return Reply(message, usage.model_copy(update={"model": usage.model or name}), finish)


def _build_call(call: ScriptCall, user: str) -> ToolCall:
    args = cast("JsonObject", _fill_placeholders(call.args, user))
    tool_call = ToolCall(tool=call.tool, args=args, reasoning=call.reasoning, malformed=call.malformed)
    return tool_call.model_copy(update={"id": call.id}) if call.id else tool_call


def _fill_placeholders(value: JsonValue, user: str) -> JsonValue:
    match value:
        case str():
            return value.replace(USER_TEXT, user)
        case list():
            return [_fill_placeholders(item, user) for item in value]
        case dict():
            return {key: _fill_placeholders(item, user) for key, item in value.items()}
        case _:
            return value
