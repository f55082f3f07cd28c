"""Adaptation of requests to the refusals of a model service: fields to drop or change, remembered per model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from daiku.dataclass import dataclass, field, replace
from daiku.domain.config import ToolProtocol
from daiku.domain.errors import ContextOverflowError, Failure, LLMError
from daiku.domain.messages import Effort, Message, ModelRequest, Reply, UserMessage
from daiku.models.history.parts import Part, describe_removal, find_removable_parts
from daiku.models.retries.policy import is_transient
from daiku.models.tokens import estimate_request
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, joined, text

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
_ABOUT_HISTORY = lazy(r"(?:messages|input|contents)\b(?!\[0\]\.role)")
"""Matches the start of a `param` or a message that is about the history rather than a field."""


class RefusalRule(NamedTuple):
    """Matches a refusal by status and a pattern for its `param`, codes, and message.

    `refused` is the request part.
    """

    statuses: tuple[int, ...]
    pattern: str
    refused: str


_REQUEST = (400, 404, 405, 422, 500, 501)
_UNKNOWN = (
    r"unknown|unrecognized|unsupported|unexpected|extra|not (?:supported|permitted|allowed)|does not support"
)


def _field_rule(name: str) -> RefusalRule:
    """Return the rule for a field that the service names: by `param`, in quotes, or as unknown."""
    word = rf"\b{name}\b"
    pattern = rf"^{name}\b|[`'\"]{name}[`'\"]|(?:{_UNKNOWN})[^.]*{word}|{word}[^.]*(?:{_UNKNOWN})"
    return RefusalRule((400, 422), word if "_" in name else pattern, name)


RULES: tuple[RefusalRule, ...] = (
    RefusalRule(
        _REQUEST, r"tools_unsupported|enable-auto-tool-choice|tool-call-parser|requires --jinja", "tools"
    ),
    RefusalRule(
        _REQUEST,
        r"no endpoints found that support tool|does(?:n't| not) support (?:tools?|functions?)\b",
        "tools",
    ),
    RefusalRule(
        _REQUEST,
        r"(?:tools?|functions?)(?:[ _-]?(?:use|calls?|calling))?[`'\"]? (?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)"
        r"|(?:unsupported|unknown|unrecognized|unexpected)[^.]{0,40}\b[`'\"]?tools\b",
        "tools",
    ),
    RefusalRule((400, 422), r"encrypted content is not supported", "include"),
    *map(
        _field_rule,
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
    RefusalRule((400, 422), r"response_format|json_schema", "response_format"),
    RefusalRule((400, 422), r"reasoning_content", "no_thinking"),
    RefusalRule(
        (400, 422),
        r"^messages\[0\]\.role|\bsystem['`\"]? (?:role|messages?)[^.]*(?:not|un)[ -]?supported",
        "system",
    ),
    _field_rule("stream"),
)
"""Every refusal that can be handled; the first matching rule applies. A field is dropped or renamed."""


@dataclass(slots=True)
class Cures:
    """What one model has refused so far, and the changes that make the next request acceptable."""

    refused: set[str] = field(default_factory=set[str])
    _efforts: dict[Effort, Effort] = field(default_factory=dict[Effort, Effort])
    _left_out: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def protocol(self, setting: ToolProtocol) -> ToolProtocol:
        """Return the tool protocol: the setting, or a text protocol if the service refused tools."""
        return "action_list" if setting == "native" and "tools" in self.refused else setting

    def apply(
        self, request: ModelRequest, part: Part | None = None, *, other_path: bool = False
    ) -> ModelRequest:
        """Return the request without everything that was refused, optionally with one more change to try."""
        refused = frozenset(self.refused | {"path"} if other_path else self.refused)
        keys = self._left_out.get(request.session)
        messages = request.messages
        if part is not None or keys:
            from daiku.models.history.parts import remove_part, remove_refused_parts  # when used

            messages = tuple(remove_part(message, part) if part else message for message in messages)
            messages = tuple(remove_refused_parts(message, keys) if keys else message for message in messages)
        if not refused and not self._efforts and messages is request.messages:
            return request
        options = tuple(option for option in request.options if option[0] not in refused)
        effort = self._efforts.get(request.effort, request.effort)
        return replace(request, messages=messages, options=options, effort=effort, refused=refused)

    def learn(self, error: LLMError, request: ModelRequest) -> Text | None:
        """Learn from a refusal of `request`. Return the notice for the user; None if there is nothing new to change."""
        message = " ".join((error.param, *error.codes, error.said))
        is_about_history = _ABOUT_HISTORY.match(error.param or error.said) is not None
        if error.status in (400, 422) and not is_about_history:
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
            if is_about_history and rule.refused not in ("tools", "no_thinking"):
                continue
            if error.status in rule.statuses and re.search(rule.pattern, message, re.IGNORECASE):
                notice = self._learn_rule(rule.refused, message, request)
                if notice is not None:
                    return notice
        return None

    def may_lack_tools(self, reply: Reply, request: ModelRequest) -> bool:
        """Return True if the server counted less than half of the tokens of a first request with tools."""
        is_first = all(isinstance(message, UserMessage) for message in request.messages)
        counted = reply.usage.prompt_tokens
        if not is_first or not counted or not request.tools or reply.message.calls or "tools" in self.refused:
            return False
        return 2 * counted < estimate_request(request)

    def learn_dropped_tools(self) -> Text:
        """Record that the server drops tools without an error. Return the notice for the user."""
        self.refused.add("tools")
        return text("llm.cure.tools_dropped")

    def _learn_rule(self, name: str, message: str, request: ModelRequest) -> Text | None:
        if name == "tools":
            if "tools" in self.refused or not request.callable_tools:
                return None
            self.refused.add("tools")
            return text("llm.cure.tools")
        if name == "no_thinking":  # first add the field to every reply, then drop it from all
            name = "no_thinking" if "no_thinking" not in self.refused else "provider_data"
        if name in ("max_tokens", "max_completion_tokens"):
            position = message.find("max_tokens")
            other = message.find("max_completion_tokens")
            name = "max_tokens" if other < 0 or 0 <= position < other else "max_completion_tokens"
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
        supported = _LISTED.search(message)
        words = _LEVEL.findall(supported[0].replace("minimal", "low")) if supported else ()
        offered: list[Effort] = [level for level in LEVELS if level in words and level != effort]
        if offered and effort not in self._efforts:
            index = LEVELS.index(effort)
            nearest = min(offered, key=lambda level: abs(LEVELS.index(level) - index))
            self._efforts[effort] = nearest
            return text("llm.cure.effort", level=nearest)
        self._efforts.update(dict.fromkeys(LEVELS, ""))
        self.refused.update(("reasoning_effort", "reasoning"))
        return text("llm.cure.field", name="reasoning_effort")

    def keep(self, session: str, part: Part, messages: tuple[Message, ...]) -> None:
        """Remember for the session that a request was accepted without `part`."""
        from daiku.models.history.parts import hash_parts  # when used

        keys = self._left_out.setdefault(session, set())
        keys.update(key for message in messages for key in hash_parts(message, part))


def may_be_path(error: LLMError) -> bool:
    """Return True if the error is about an unknown path rather than an unknown model."""
    if _PATH.search(error.said):
        return True
    return (
        error.failure.kind == "not_found"
        and error.status in (0, 404, 405)
        and (not error.said or _NOT_FOUND.fullmatch(error.said) is not None)
    )


RESERVED_TOKENS = 2_048
"""Minimum tokens of a context window to leave for a reply and the next turns."""


def describe_final_error(error: LLMError, request: ModelRequest, tries: int, window: int | None) -> LLMError:
    """Return the error that ends the retries of a request, with the number of tries.

    For a context overflow of a local server, on the first request of a conversation, the error names the window that
    is needed. `window` is the server's in tokens, 0 if unknown, None for a remote service.
    """
    failure = error.failure
    if window is not None and isinstance(error, ContextOverflowError):
        if any(message.role == "assistant" for message in request.messages):
            return error
        needed = int(estimate_request(request) * 1.25)
        larger = 1 << (needed + RESERVED_TOKENS - 1).bit_length()
        message = (
            text("llm.window_too_small_of", needed=f"{needed:,}", window=f"{window:,}")
            if window
            else text("llm.needs_window", needed=f"{needed:,}")
        )
        failure = Failure(
            kind="context_overflow", message=message, hint=text("llm.larger_window", window=larger)
        )
    elif failure.kind == "not_found":
        hint = joined("sentences", [text("llm.asked_for", model=request.model), failure.hint])
        failure = failure.model_copy(update={"hint": hint})
    elif tries > 1:
        message = text("llm.tries", message=failure.message, count=tries)
        failure = failure.model_copy(update={"message": message})
    return type(error)(failure, status=error.status, retry_after=error.retry_after)


@dataclass(slots=True)
class Trial:
    """Change that is currently tried: another path, or the history without a part. `refusal` is the first error."""

    refusal: LLMError | None = None
    path: bool = False
    part: Part | None = None
    parts: Iterator[Part] = iter(())

    def next_cure(
        self, error: LLMError, cures: Cures, request: ModelRequest, *, may_move: bool
    ) -> Text | None:
        """Return the notice of the next change to try after `error`; None if there is none.

        `may_move` is True if the service's paths may or may not begin with a version.
        """
        if self.refusal is None:
            if (notice := cures.learn(error, request)) is not None:
                return notice
            if may_move and "path" not in cures.refused and may_be_path(error):
                self.refusal, self.path = error, True
                return text("llm.cure.path")
        if is_transient(error):
            return None
        if self.refusal is None:
            self.refusal, self.parts = error, find_removable_parts(error, cures.apply(request))
        self.path = False
        self.part = next(self.parts, None)
        return describe_removal(self.part) if self.part is not None else None

    def apply(self, cures: Cures, request: ModelRequest) -> ModelRequest:
        """Return the request with all learned changes and the one that is tried."""
        return cures.apply(request, self.part, other_path=self.path)

    def accept(self, cures: Cures, request: ModelRequest) -> None:
        """Remember that the service accepted the change."""
        if self.path:
            cures.refused.add("path")
        elif self.part is not None:
            cures.keep(request.session, self.part, request.messages)
