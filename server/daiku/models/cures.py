"""Errors that name their cure: what to leave out or change, tried once and then remembered for the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from daiku.dataclass import dataclass, field, replace
from daiku.domain.config import ToolProtocol
from daiku.domain.errors import LLMError
from daiku.domain.messages import Effort, Message, ModelRequest, Reply, UserMessage
from daiku.models.tokens import estimate_request
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

if TYPE_CHECKING:
    from daiku.models.history.parts import Part

LEVELS: tuple[Effort, ...] = ("none", "low", "medium", "high")
_EFFORT = lazy(
    r"reasoning[_. ]?effort|\beffort\b|thinking[_ ]?(?:level|budget)|reasoning\.effort", re.IGNORECASE
)
_LEVEL = lazy(r"\b(?:none|low|medium|high)\b")
_LISTED = lazy(r"(?:supported|allowed|valid|one of|expected|permitted|choose)\b.*", re.IGNORECASE | re.DOTALL)
_PATH = lazy(
    r"unexpected endpoint|invalid url|cannot (?:post|get)|no (?:such )?route|page not found", re.IGNORECASE
)
_NOT_FOUND = lazy(
    r"(?:404\W*)?(?:(?:resource|path|url|endpoint|file)\W+)?not found\W*|method not allowed\W*", re.IGNORECASE
)
_OF_HISTORY = lazy(r"(?:messages|input|contents)\b(?!\[0\]\.role)")
"""The beginning of a `param`, or of a message, that is about a part of the history and not about a field."""


class Rule(NamedTuple):
    """A refusal by its status and by a pattern for its `param`, its codes, and its words; and what is refused."""

    statuses: tuple[int, ...]
    pattern: str
    refused: str


_REQUEST = (400, 404, 405, 422, 500, 501)
_UNKNOWN = (
    r"unknown|unrecognized|unsupported|unexpected|extra|not (?:supported|permitted|allowed)|does not support"
)


def _field(name: str) -> Rule:
    """Return the rule of a field that the service names: by `param`, in quotes, or as one that it does not know."""
    word = rf"\b{name}\b"
    pattern = rf"^{name}\b|[`'\"]{name}[`'\"]|(?:{_UNKNOWN})[^.]*{word}|{word}[^.]*(?:{_UNKNOWN})"
    return Rule((400, 422), word if "_" in name else pattern, name)


RULES: tuple[Rule, ...] = (
    Rule(_REQUEST, r"tools_unsupported|enable-auto-tool-choice|tool-call-parser|requires --jinja", "tools"),
    Rule(
        _REQUEST,
        r"no endpoints found that support tool|does(?:n't| not) support (?:tools?|functions?)\b",
        "tools",
    ),
    Rule(
        _REQUEST,
        r"(?:tools?|functions?)(?:[ _-]?(?:use|calls?|calling))?[`'\"]? (?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)"
        r"|(?:unsupported|unknown|unrecognized|unexpected)[^.]{0,40}\b[`'\"]?tools\b",
        "tools",
    ),
    Rule((400, 422), r"encrypted content is not supported", "include"),
    *map(
        _field,
        [
            "max_completion_tokens",
            "max_output_tokens",
            "max_tokens",
            "stream_options",
            "prompt_cache_key",
            "verbosity",
            "parallel_tool_calls",
            "tool_choice",
            "store",
            "include",
            "reasoning",
        ],
    ),
    Rule((400, 422), r"response_format|json_schema", "response_format"),
    Rule((400, 422), r"reasoning_content", "no_thinking"),
    Rule(
        (400, 422),
        r"^messages\[0\]\.role|\bsystem['`\"]? (?:role|messages?)[^.]*(?:not|un)[ -]?supported",
        "system",
    ),
    _field("stream"),
)
"""Every refusal with a cure; the first rule that fits counts. A field is left out or sent under its other name."""


@dataclass(slots=True)
class Cures:
    """What one model refused so far, and the changes that make the next request acceptable."""

    refused: set[str] = field(default_factory=set[str])
    _efforts: dict[Effort, Effort] = field(default_factory=dict[Effort, Effort])
    _left_out: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def protocol(self, setting: ToolProtocol) -> ToolProtocol:
        """Return how the model is told of tools: as set, or as text if the service refused tools."""
        return "action_list" if setting == "native" and "tools" in self.refused else setting

    def apply(
        self, request: ModelRequest, part: Part | None = None, *, other_path: bool = False
    ) -> ModelRequest:
        """Return the request without what was refused, and with a change that is tried."""
        refused = frozenset(self.refused | {"path"} if other_path else self.refused)
        known = self._left_out.get(request.session)
        messages = request.messages
        if part is not None or known:
            from daiku.models.history.parts import without_known, without_part  # when used

            messages = tuple(without_part(message, part) if part else message for message in messages)
            messages = tuple(without_known(message, known) if known else message for message in messages)
        if not refused and not self._efforts and messages is request.messages:
            return request
        options = tuple(option for option in request.options if option[0] not in refused)
        effort = self._efforts.get(request.effort, request.effort)
        return replace(request, messages=messages, options=options, effort=effort, refused=refused)

    def learn(self, error: LLMError, request: ModelRequest) -> Text | None:
        """Learn the cure that a refusal of `request` names, and return the notice; None if it names no new one."""
        message = " ".join((error.param, *error.codes, error.said))
        of_history = _OF_HISTORY.match(error.param or error.said) is not None
        if error.status in (400, 422) and not of_history:
            options = (name for name, _ in request.options if name not in self.refused)
            if option := next(
                (name for name in options if re.search(rf"\b{re.escape(name)}\b", message)), ""
            ):
                return self._leave_out(option)
            if (
                _EFFORT.search(message)
                and (notice := self._learn_effort(message, request.effort)) is not None
            ):
                return notice
        for rule in RULES:
            if of_history and rule.refused not in ("tools", "no_thinking"):
                continue
            if error.status in rule.statuses and re.search(rule.pattern, message, re.IGNORECASE):
                notice = self._learn_rule(rule.refused, message, request)
                if notice is not None:
                    return notice
        return None

    def may_lack_tools(self, reply: Reply, request: ModelRequest) -> bool:
        """Return True if the server counted less than half of the tokens of a first request with tools."""
        first = all(isinstance(message, UserMessage) for message in request.messages)
        counted = reply.usage.prompt_tokens
        if not first or not counted or not request.tools or reply.message.calls or "tools" in self.refused:
            return False
        return 2 * counted < estimate_request(request)

    def learn_dropped_tools(self) -> Text:
        """Learn that the server leaves out the tools without an error, and return the notice."""
        self.refused.add("tools")
        return text("llm.cure.tools_dropped")

    def _learn_rule(self, name: str, message: str, request: ModelRequest) -> Text | None:
        if name == "tools":
            if "tools" in self.refused or not request.callable_tools:
                return None
            self.refused.add("tools")
            return text("llm.cure.tools")
        if name == "no_thinking":  # first every reply gets the field, then none
            name = "no_thinking" if "no_thinking" not in self.refused else "provider_data"
        if name in ("max_tokens", "max_completion_tokens"):
            place = message.find("max_tokens")
            other = message.find("max_completion_tokens")
            name = "max_tokens" if other < 0 or 0 <= place < other else "max_completion_tokens"
        if name in self.refused or (
            name in ("max_tokens", "max_completion_tokens") and not request.max_output
        ):
            return None
        return self._leave_out(name)

    def _leave_out(self, name: str) -> Text:
        self.refused.add(name)
        return text("llm.cure.field", name=name)

    def _learn_effort(self, message: str, effort: Effort) -> Text | None:
        if not effort or "reasoning_effort" in self.refused:
            return None
        listed = _LISTED.search(message)
        words = _LEVEL.findall(listed[0].replace("minimal", "low")) if listed else ()
        offered: list[Effort] = [level for level in LEVELS if level in words and level != effort]
        if offered and effort not in self._efforts:
            place = LEVELS.index(effort)
            near = min(offered, key=lambda level: abs(LEVELS.index(level) - place))
            self._efforts[effort] = near
            return text("llm.cure.effort", level=near)
        self._efforts.update(dict.fromkeys(LEVELS, ""))
        self.refused.update(("reasoning_effort", "reasoning"))
        return text("llm.cure.field", name="reasoning_effort")

    def keep(self, session: str, part: Part, messages: tuple[Message, ...]) -> None:
        """Remember for the session that a request was accepted without `part`."""
        from daiku.models.history.parts import keys_of  # when used

        known = self._left_out.setdefault(session, set())
        known.update(key for message in messages for key in keys_of(message, part))


def may_be_path(error: LLMError) -> bool:
    """Return True if the service does not know the path, rather than the model."""
    if _PATH.search(error.said):
        return True
    return (
        error.failure.kind == "not_found"
        and error.status in (0, 404, 405)
        and (not error.said or _NOT_FOUND.fullmatch(error.said) is not None)
    )
