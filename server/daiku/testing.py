"""Fakes for tests of agents: a scripted model, tool, and approver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast, get_args

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.config import ToolProtocol
from daiku.domain.errors import Failure, LLMRequestError
from daiku.domain.events import ApprovalAsked, ApprovalDecision
from daiku.domain.messages import AssistantMessage, ModelEvent, ModelRequest, Reply, TextDelta, Usage
from daiku.domain.tools import ToolCall, ToolResult
from daiku.models.families import ANY_MODEL, OVERRIDES, Model, ModelTraits
from daiku.models.tokens import estimate, estimate_json, estimate_request
from daiku.run.rules.budget import Quote
from daiku.texts.rules.words import streamed_pieces
from daiku.texts.text import Text, text
from daiku.tools.functions import build_result
from daiku.tools.tool import AnyArgs, Tool, ToolContext

FakeReply: TypeAlias = (
    str | Mapping[str, Any] | Sequence["str | Mapping[str, Any]"] | Exception | Callable[[ModelRequest], Any]
)
"""A text, a call as `{"tool": name, "args": {…}}`, a list of these, an exception, or a function of the
request that returns one of these (it may be async)."""

_CALL_KEYS = frozenset({"tool", "args"})


class FakeLLM:
    """A model with scripted replies, one for each request; texts are streamed in pieces.

    `requests` records each request: `system`, `messages`, and `tools`. A request after the last reply fails.
    Raises TypeError or ValueError if a reply has none of the forms of `FakeReply`.
    """

    def __init__(self, *replies: FakeReply) -> None:
        for place, reply in enumerate(replies, 1):
            if isinstance(reply, type) or not callable(reply):
                _parse_reply(reply, f"reply {place} of FakeLLM")
        self.replies = replies
        self.requests: list[ModelRequest] = []
        self.name = "fake/llm"
        self.context = 0
        self.traits: ModelTraits = ANY_MODEL
        self.price_step = 0
        self.tool_protocol: ToolProtocol = "native"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Yield the pieces of the next reply.

        Raises LLMRequestError if no reply is left, and the reply itself if it is an exception.
        """
        self.requests.append(request)
        number, count = len(self.requests), len(self.replies)
        if number > count:
            message = text("llm.fake.at_end", asked=number, count=count)
            raise LLMRequestError(Failure(kind="usage", message=message, hint=text("llm.fake.more")))
        reply: object = self.replies[number - 1]
        if not isinstance(reply, type) and callable(reply):
            reply = reply(request)
        if isinstance(reply, Awaitable):
            reply = cast("object", await reply)
        if isinstance(reply, Exception):
            raise reply
        reply_text, calls = _parse_reply(reply, f"reply {number} of FakeLLM")
        for piece in streamed_pieces(reply_text):
            yield TextDelta(piece)
        yield _build_reply(request, reply_text, calls)

    def quote(self, request: ModelRequest) -> Quote:
        """Return an estimate of the request's tokens; the cost is 0."""
        return Quote(estimate_request(request), 0, 0.0, 0.0)


def _parse_reply(reply: object, where: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and the calls of a reply; neither for an exception."""
    match reply:
        case Exception():
            return "", ()
        case str():
            return reply, ()
        case Mapping():
            return "", (_parse_call(cast("Mapping[str, Any]", reply), where),)
        case list() | tuple():
            parsed = [_parse_reply(part, where) for part in cast("Sequence[object]", reply)]
            return "\n\n".join(part_text for part_text, _ in parsed if part_text), tuple(
                c for _, calls in parsed for c in calls
            )
        case _:
            raise TypeError(
                f'{where} must be a text, {{"tool": name, "args": {{…}}}}, a list of such, an exception or a function '
                f"of the request, not {type(reply).__name__}"
            )


def _parse_call(reply: Mapping[str, Any], where: str) -> ToolCall:
    if unknown := sorted(set(reply) - _CALL_KEYS):
        raise ValueError(f'{where} has the key {unknown[0]!r}: a call is {{"tool": name, "args": {{…}}}}')
    name, args = reply.get("tool"), reply.get("args", {})
    if not isinstance(name, str) or not name:
        raise ValueError(f'{where} names no tool: a call is {{"tool": name, "args": {{…}}}}')
    if isinstance(args, str):  # argument text that is no JSON object, as weak models write it
        return ToolCall(tool=name, malformed=args)
    if not isinstance(args, Mapping):
        raise TypeError(f"args in {where} must be a dict, not {type(args).__name__}")
    return ToolCall(tool=name, args=dict(cast("Mapping[str, JsonValue]", args)))


def _build_reply(request: ModelRequest, reply_text: str, calls: tuple[ToolCall, ...]) -> Reply:
    written = estimate(reply_text) + sum(
        estimate_json(call.model_dump_json(include={"tool", "args"})) for call in calls
    )
    usage = Usage(
        model="fake/llm", prompt_tokens=estimate_request(request), completion_tokens=written, cost=0.0
    )
    return Reply(
        AssistantMessage(text=Text(reply_text), calls=calls), usage, "tool_calls" if calls else "stop"
    )


class FakeTool(Tool):
    """A tool that accepts any arguments and returns `result`.

    `result` is a text, a value, an exception to raise, or a function of the arguments. `calls` records the
    arguments of each call.
    """

    __slots__ = ("calls",)
    calls: list[JsonObject]

    def __init__(self, name: str, result: object = "") -> None:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]  # people's own code
            raise TypeError(f"name of a FakeTool must be a text, not {type(name).__name__}")
        calls: list[JsonObject] = []

        async def run(args: AnyArgs, _context: ToolContext) -> ToolResult:
            calls.append(arguments := args.as_json())
            value: object = result(arguments) if callable(result) else result
            if isinstance(value, Exception):
                raise value
            return build_result(name, value)

        schema: JsonObject = {"type": "object", "properties": {}}
        super().__init__(name, "none", AnyArgs, run, schema=schema, description=f"{name}, for a test")
        object.__setattr__(self, "calls", calls)


class FakePerson:
    """An approver for `approvals=` with scripted decisions, one for each question.

    `asked` records the questions. A decision is `allow_once`, `allow_always`, `reject_once`, or `reject_always`. Raises ValueError for
    another one, LookupError if none is left.
    """

    def __init__(self, *decisions: ApprovalDecision) -> None:
        valid = get_args(ApprovalDecision)
        if wrong := [decision for decision in decisions if decision not in valid]:
            raise ValueError(f"decision {wrong[0]!r} of FakePerson must be one of {', '.join(valid)}")
        self.decisions = decisions
        self.asked: list[ApprovalAsked] = []

    async def __call__(self, question: ApprovalAsked) -> ApprovalDecision:
        self.asked.append(question)
        if len(self.asked) > len(self.decisions):
            raise LookupError(
                f"FakePerson was asked {len(self.asked)} times and has {len(self.decisions)} decisions: give it more"
            )
        return self.decisions[len(self.asked) - 1]


@contextmanager
def override_model(model: Model) -> Generator[None]:
    """Make `model` answer for every agent, hand-off, and router, even if they name another model."""
    before, OVERRIDES.model = OVERRIDES.model, model
    try:
        yield
    finally:
        OVERRIDES.model = before


def forbid_models() -> None:
    """Make every request to a model service fail before it is sent; scripted and fake models still work."""
    OVERRIDES.forbidden = True
