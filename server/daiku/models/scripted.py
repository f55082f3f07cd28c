"""The `scripted` provider: plays a file of replies instead of asking a model, for tests, demos and replay."""

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
"""Stands in texts and arguments for what the person wrote last."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptCall(_Line):
    """A tool call of a scripted reply; `malformed` is argument text that is no JSON object."""

    tool: str = Field(min_length=1)
    args: dict[str, JsonValue] = {}
    id: str = ""
    reasoning: str | None = None
    malformed: str | None = None


class ScriptError(_Line):
    """A failure to play: after the line's text, the first `times` times that the line is asked for."""

    kind: FailureKind = "timeout"
    message: Text = text("llm.script.says_so")
    hint: Text = NO_TEXT
    status: int = 0
    retry_after: float | None = None
    times: int = Field(1_000_000, ge=1)


class ScriptLine(_Line):
    """One reply. `when` must be in the message before it, `agent` in the system prompt: else the
    line is skipped. `delay_ms` is the pause before each piece of text."""

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
    """Read a script file. Raises UsageError that names the wrong line."""
    try:
        written = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = text("llm.script.no_file") if isinstance(error, FileNotFoundError) else str(error)
        raise _usage(text("llm.script.unreadable", name=str(path), why=why)) from error
    lines: list[ScriptLine] = []
    for number, line in enumerate(written.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("//"):
            try:
                lines.append(ScriptLine.model_validate_json(line))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(str(part) for part in first["loc"])
                what = f"{place}: {first['msg']}" if place else first["msg"]
                raise _usage(text("llm.script.wrong_line", name=str(path), line=number, what=what)) from error
    if not lines:
        raise _usage(text("llm.script.empty", name=str(path)))
    return Script(path, tuple(lines))


def _usage(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=text("llm.script.form")))


def next_line(script: Script, system: str, messages: Sequence[Message]) -> int:
    """The index of the line that answers `messages`: the first that fits behind the one that gave
    the last reply. Depends on the messages only, so a resumed run goes on where it was."""
    place, seen = 0, 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage) and (told := _next_index(message, script)) is not None:
            place, seen = told, index + 1
            break
    for index in range(seen, len(messages)):
        message = messages[index]
        if isinstance(message, AssistantMessage) and not is_own(message):
            place = _find_line(script, place, system, messages[:index]) + 1
    return _find_line(script, place, system, messages)


def _script_of(message: Message) -> JsonValue:
    """The name of the script that a reply was played from."""
    own = message.opaque.get("scripted") if isinstance(message, AssistantMessage) else None
    return own.get("script") if isinstance(own, dict) else None


def _next_index(message: AssistantMessage, script: Script) -> int | None:
    own = message.opaque.get("scripted")
    if isinstance(own, dict) and own.get("script") == script.path.name:
        place = own.get("next")
        return place if isinstance(place, int) else None
    return None


def _words(message: Message | None) -> str:
    """What a message says; of a person's only their own words."""
    if message is None:
        return ""
    return message.words if isinstance(message, UserMessage) else message.text


def _find_line(script: Script, place: int, system: str, messages: Sequence[Message]) -> int:
    last = messages[-1] if messages else None
    before = _words(last)
    for index in range(place, len(script.lines)):
        line = script.lines[index]
        if line.when in before and line.agent in system:
            return index
    return len(script.lines)


@dataclass(slots=True)
class ScriptedProvider:
    """Plays `scripted/<path>`; a relative path is looked for under each of `folders` in order, `demo` is the
    built-in demonstration: with `.ja` before its suffix for who writes Japanese or, by `locale`, has their
    editor in it. Besides LLMError it raises UsageError for a bad script."""

    folders: tuple[Path, ...] = ()
    demo: Path | None = None
    locale: str = "en"
    name: str = "scripted"
    _played: dict[tuple[Path, int], int] = field(default_factory=dict[tuple[Path, int], int])
    _read: dict[Path, tuple[int, Script]] = field(default_factory=dict[Path, tuple[int, Script]])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        script = self._script(request)
        index = next_line(script, request.system, request.messages)
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
            self._fail(script, index, line.error)
        yield _reply(request, script, index, answer, thinking, user)

    async def models(self) -> tuple[ModelInfo, ...]:
        if self.demo is None or not self.demo.is_file():
            return ()
        return (ModelInfo(provider=self.name, name="demo", trait=text("llm.trait.script")),)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return estimate_request(request)

    async def aclose(self) -> None:
        """Do nothing: this provider holds no connection."""

    def _script(self, request: ModelRequest) -> Script:
        path = self._find(request.model.removeprefix("scripted/").strip())
        if path == self.demo:
            path = self._in_language(path, request.messages)
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            changed = 0
        held = self._read.get(path)
        if held is None or held[0] != changed:
            held = self._read[path] = (changed, read_script(path))
        return held[1]

    def _find(self, name: str) -> Path:
        if name in {"", "demo"} and self.demo is not None:
            return self.demo
        if not name:
            raise _usage(text("llm.script.unnamed"))
        path = Path(name).expanduser()
        candidates = (path,) if path.is_absolute() else tuple(folder / path for folder in self.folders)
        return next((c for c in candidates if c.is_file()), candidates[0] if candidates else path)

    def _in_language(self, demo: Path, messages: Sequence[Message]) -> Path:
        """The demonstration in the person's language; a conversation goes on in the one that it began in."""
        japanese = demo.with_suffix(f".ja{demo.suffix}")
        began = next((name for m in messages if (name := _script_of(m)) in (demo.name, japanese.name)), None)
        said = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
        wanted = _KANA_OR_KANJI.search(said) is not None or self.locale.startswith("ja")
        wanted = wanted if began is None else began == japanese.name
        return japanese if wanted and japanese.is_file() else demo

    def _fail(self, script: Script, index: int, error: ScriptError) -> None:
        played = self._played.get((script.path, index), 0)
        self._played[script.path, index] = played + 1
        if played < error.times:
            raise _error_of(error)


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


def _error_of(error: ScriptError) -> LLMError:
    failure = Failure(
        kind=error.kind, message=error.message, hint=error.hint, retryable=error.kind in _RETRYABLE
    )
    kind = _ERRORS.get(error.kind, LLMRequestError)
    return kind(failure, status=error.status, retry_after=error.retry_after)


def _reply(request: ModelRequest, script: Script, index: int, answer: str, thinking: str, user: str) -> Reply:
    line = script.lines[index]
    calls = tuple(_call(call, user) for call in line.calls)
    written = answer + thinking + "".join(str(call.args) for call in calls)
    usage = line.usage or Usage(
        prompt_tokens=estimate_request(request), completion_tokens=estimate(written), cost=0.0
    )
    own: JsonObject = {"script": script.path.name, "next": index + 1}
    message = AssistantMessage(text=Text(answer), thinking=thinking, calls=calls, opaque={"scripted": own})
    finish: FinishReason = line.finish or ("tool_calls" if calls else "stop")
    name = f"scripted/{request.model.removeprefix('scripted/') or 'demo'}"
    return Reply(message, usage.model_copy(update={"model": usage.model or name}), finish)


def _call(call: ScriptCall, user: str) -> ToolCall:
    args = cast("JsonObject", _fill(call.args, user))
    made = ToolCall(tool=call.tool, args=args, reasoning=call.reasoning, malformed=call.malformed)
    return made.model_copy(update={"id": call.id}) if call.id else made


def _fill(value: JsonValue, user: str) -> JsonValue:
    match value:
        case str():
            return value.replace(USER_TEXT, user)
        case list():
            return [_fill(item, user) for item in value]
        case dict():
            return {key: _fill(item, user) for key, item in value.items()}
        case _:
            return value
