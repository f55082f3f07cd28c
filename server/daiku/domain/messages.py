"""What a model reads and says: messages, the request for a reply, the pieces of a reply."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue, model_validator

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen, JsonObject, Wire
from daiku.domain.tools import Outcome, ToolCall, ToolSpec, with_outcome
from daiku.texts.text import NO_TEXT, Said, Text, as_json, from_json


class Image(Wire):
    """A picture for the model: base64 data and its media type (image/png, …)."""

    media_type: str
    data: str


OWN_KEY = "daiku"
"""The key of `AssistantMessage.opaque` that is no provider's: what a role notes about its own reply."""
PLACE_KEY = "scripted"
"""The key of a place in a script: unlike what other providers keep it holds whatever a role makes of the reply."""


UserMessageKind = Literal["person", "rules", "checker", "note", "summary"]
"""Who speaks: a person (or what a stage was asked to do), the rules of folders, the check of what a run hands
over, a fact that the model must know, the summary of older messages."""


class UserMessage(Frozen):
    """`preface`: so many characters at the beginning of `text` are Daiku's, about the environment."""

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
    """A whole reply. `opaque` is what only its provider understands and must get back unchanged
    (thinking signatures, encrypted reasoning items), keyed by the provider's protocol name."""

    role: Literal["assistant"] = "assistant"
    text: Text = Text("")
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: JsonObject = {}


def mark_own(message: AssistantMessage) -> AssistantMessage:
    """Mark a reply as written by Daiku itself, without a model."""
    told = message.opaque.get(OWN_KEY)
    own: JsonObject = {**(told if isinstance(told, dict) else {}), "own": True}
    return message.model_copy(update={"opaque": {**message.opaque, OWN_KEY: own}})


def mark_unreadable(message: AssistantMessage) -> AssistantMessage:
    """Mark a reply that holds calls which could not be read, so that it never counts as an answer."""
    told = message.opaque.get(OWN_KEY)
    marked: JsonObject = {**(told if isinstance(told, dict) else {}), "unreadable": True}
    return message.model_copy(update={"opaque": {**message.opaque, OWN_KEY: marked}})


def is_unreadable(message: AssistantMessage) -> bool:
    """Return True for a reply that `mark_unreadable` marked."""
    told = message.opaque.get(OWN_KEY)
    return isinstance(told, dict) and told.get("unreadable") is True


def question_metadata(said: Sequence[Text]) -> JsonObject:
    """Return the metadata (`opaque`) of a reply that asks the person: the question and its choices."""
    return {OWN_KEY: {"asks": [as_json(each) for each in said]}} if said else {}


def question_of(opaque: JsonObject) -> tuple[Text, ...]:
    """Return the question and its choices from a reply's metadata; empty if it has none."""
    told = opaque.get(OWN_KEY)
    values = told.get("asks") if isinstance(told, dict) else None
    return tuple(from_json("", value) for value in values) if isinstance(values, list) else ()


def is_own(message: AssistantMessage) -> bool:
    """Whether Daiku said this itself, as `mark_own` marks it."""
    told = message.opaque.get(OWN_KEY)
    return isinstance(told, dict) and told.get("own") is True


class ToolMessage(Frozen):
    role: Literal["tool"] = "tool"
    call_id: str
    tool: str
    ok: bool = False
    text: Said
    sources: Text = NO_TEXT
    """What a person reads of research, where this is some."""
    images: tuple[Image, ...] = ()
    untrusted: bool = False
    outcome: Outcome | None = "failed"
    """None: the run ended before the call was answered."""
    new_problems: int = 0
    """Problems that the editor shows since this edit and did not show before."""
    exit_code: int | None = None
    """Of a command; None for other tools, and for a command that is still running."""
    whole: str = ""
    """The file that holds the whole output where `text` is a part of it."""

    _outcome = model_validator(mode="before")(with_outcome)


Message: TypeAlias = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class Usage(Wire):
    """Tokens of one call or a whole run; `cost` in USD, None where no price is known. As an event: one call."""

    type: ClassVar[str] = "usage"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    def plus(self, other: "Usage") -> "Usage":
        """The sum; the cost stays unknown only when both are."""
        known = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            model=other.model or self.model,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=sum(known) if known else None,
        )


Effort = Literal["", "none", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model: everything that it may look at.

    `messages` only ever grows between two calls of one run (a compaction starts anew), so a
    provider may keep what it encoded. `max_output` 0 leaves the limit to the provider. `deferred` are tools
    that are not sent, and can be called all the same.
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
    """What is passed on to the service besides, by its names: the temperature, …"""
    in_words: bool = False
    """The reply is to be words: no call in it would be carried out."""
    schema: JsonObject | None = None
    """JSON Schema of the reply, for servers that can hold a model to it; others go by the tools."""
    refused: frozenset[str] = frozenset()
    """Names that the service refused before (`models/cures.py`): the provider leaves them out or sends another form."""

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
    """The closing piece of every stream: the whole message, why it ended, what it cost."""

    message: AssistantMessage
    usage: Usage
    finish: FinishReason

    def keys(self) -> tuple[str, ...]:
        """The parts that `reply["text"]` gives, so that `dict(reply)` works (R1.40)."""
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
    """The call is made again: text shown so far is void. `reason` is for the person, `wait` in seconds."""

    reason: Text
    attempt: int
    wait: float


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | Restarted | Reply


class ModelInfo(Frozen):
    """A model on offer; `context` and `max_output` in tokens, 0 where unknown; prices USD per million."""

    provider: str
    name: str
    context: int = 0
    max_output: int = 0
    tools: bool = True
    images: bool = False
    thinking: bool = False
    trait: Text = Text("")
