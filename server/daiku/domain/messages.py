"""Model messages, model requests, and the parts of a reply stream."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue, model_validator

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen, JsonObject, Wire
from daiku.domain.tools import Outcome, ToolCall, ToolSpec, with_outcome
from daiku.texts.text import NO_TEXT, Said, Text, as_json, from_json


class Image(Wire):
    """An image for the model: base64 data and its media type (image/png, …)."""

    media_type: str
    data: str


OWN_KEY = "daiku"
"""Key of Daiku's own metadata in `AssistantMessage.opaque`; all other keys belong to providers."""
PLACE_KEY = "scripted"
"""Key of a position in a script. Unlike other providers' data, it survives changes that a role makes to the
reply."""


UserMessageKind = Literal["person", "rules", "checker", "note", "summary"]
"""Author or purpose: the user (or a stage's task), rules files, the check of a handover, a fact for the model,
or the summary of older messages."""


class UserMessage(Frozen):
    """A user message. The first `preface` characters of `text` are Daiku's, about the environment."""

    role: Literal["user"] = "user"
    text: str
    images: tuple[Image, ...] = ()
    kind: UserMessageKind = "person"
    preface: int = 0

    @property
    def words(self) -> str:
        """The text without its preface."""
        return self.text[self.preface :]


class AssistantMessage(Frozen):
    """A complete reply.

    `opaque` is provider data that goes back unchanged (thinking signatures, encrypted reasoning items),
    keyed by the provider's protocol name.
    """

    role: Literal["assistant"] = "assistant"
    text: Text = Text("")
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: JsonObject = {}


def mark_own(message: AssistantMessage) -> AssistantMessage:
    """Mark a reply as written by Daiku, without a model."""
    metadata = message.opaque.get(OWN_KEY)
    own: JsonObject = {**(metadata if isinstance(metadata, dict) else {}), "own": True}
    return message.model_copy(update={"opaque": {**message.opaque, OWN_KEY: own}})


def mark_unreadable(message: AssistantMessage) -> AssistantMessage:
    """Mark a reply with calls that cannot be parsed, so that it never counts as an answer."""
    metadata = message.opaque.get(OWN_KEY)
    marked: JsonObject = {**(metadata if isinstance(metadata, dict) else {}), "unreadable": True}
    return message.model_copy(update={"opaque": {**message.opaque, OWN_KEY: marked}})


def is_unreadable(message: AssistantMessage) -> bool:
    """Return True for a reply that `mark_unreadable` marked."""
    metadata = message.opaque.get(OWN_KEY)
    return isinstance(metadata, dict) and metadata.get("unreadable") is True


def question_metadata(texts: Sequence[Text]) -> JsonObject:
    """Return the `opaque` metadata of a reply that asks the user: the question, then its choices."""
    return {OWN_KEY: {"asks": [as_json(item) for item in texts]}} if texts else {}


def question_of(opaque: JsonObject) -> tuple[Text, ...]:
    """Return the question and its choices from a reply's metadata; empty if there is none."""
    metadata = opaque.get(OWN_KEY)
    values = metadata.get("asks") if isinstance(metadata, dict) else None
    return tuple(from_json("", value) for value in values) if isinstance(values, list) else ()


def is_own(message: AssistantMessage) -> bool:
    """Return True if `mark_own` marked the reply."""
    metadata = message.opaque.get(OWN_KEY)
    return isinstance(metadata, dict) and metadata.get("own") is True


class ToolMessage(Frozen):
    role: Literal["tool"] = "tool"
    call_id: str
    tool: str
    ok: bool = False
    text: Said
    sources: Text = NO_TEXT
    """Sources of research, for the user."""
    images: tuple[Image, ...] = ()
    untrusted: bool = False
    outcome: Outcome | None = "failed"
    """None if the run ended before the call was answered."""
    new_problems: int = 0
    """Number of editor problems that appeared after this edit."""
    exit_code: int | None = None
    """Exit code of a command; None for other tools and for running commands."""
    whole: str = ""
    """File with the complete output if `text` is truncated."""

    _outcome = model_validator(mode="before")(with_outcome)


Message: TypeAlias = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class Usage(Wire):
    """Tokens of one call or one run; `cost` in USD, or None if the price is unknown. As an event: one call."""

    type: ClassVar[str] = "usage"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum; its cost is None only if both costs are."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            model=other.model or self.model,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=sum(costs) if costs else None,
        )


Effort = Literal["", "none", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call with its complete input.

    `messages` only grows between two calls of a run (except after a compaction), so a provider may cache its
    encoding. `max_output` is in tokens; 0 leaves the limit to the provider. `deferred` tools are not sent
    but can be called.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    deferred: tuple[ToolSpec, ...] = ()
    max_output: int = 0
    effort: Effort = ""
    session: str = ""
    options: tuple[tuple[str, JsonValue], ...] = ()
    """Further parameters for the service, by its names: the temperature, …"""
    in_words: bool = False
    """True if the reply must be text; its tool calls would not be run."""
    schema: JsonObject | None = None
    """JSON Schema of the reply, for servers that can enforce one; others use the tools."""
    refused: frozenset[str] = frozenset()
    """Parameters that the service rejected before (`models/cures.py`): the provider omits or replaces them."""

    @property
    def callable_tools(self) -> tuple[ToolSpec, ...]:
        """Every tool that a reply may call."""
        return (*self.tools, *self.deferred)


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "other"]


@dataclass(frozen=True, slots=True)
class Reply:
    """Last item of every stream: the complete message, its finish reason, and its usage."""

    message: AssistantMessage
    usage: Usage
    finish: FinishReason

    def keys(self) -> tuple[str, ...]:
        """Return the keys of `reply[key]`, so that `dict(reply)` works (R1.40)."""
        return ("role", "text", "tool_calls", "finish", "usage")

    def __getitem__(self, key: str) -> JsonValue:
        match key:
            case "role":
                return self.message.role
            case "text":
                return str(self.message.text)
            case "tool_calls":
                return [{"id": c.id, "tool": c.tool, "args": c.args} for c in self.message.calls]
            case "finish":
                return self.finish
            case "usage":
                return self.usage.model_dump()
            case _:
                raise KeyError(key)


@dataclass(frozen=True, slots=True)
class Restarted:
    """Notice that the call is retried after `wait` seconds; text shown so far is void. `reason` is for the user."""

    reason: Text
    attempt: int
    wait: float


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | Restarted | Reply


class ModelInfo(Frozen):
    """An available model; `context` and `max_output` in tokens, 0 if unknown."""

    provider: str
    name: str
    context: int = 0
    max_output: int = 0
    tools: bool = True
    images: bool = False
    thinking: bool = False
    trait: Text = Text("")
