"""Failure values, and the exceptions that carry them.

DaikuError                 base of all expected errors; carries a Failure
├─ UsageError              invalid user input (setting, option, name, file)
├─ LLMError                a model call failed
│  ├─ LLMTimeoutError      timeout, lost connection, 408, 5xx
│  ├─ LLMRateLimitError    429, overloaded
│  ├─ ModelLoadingError    a server is still loading its model
│  ├─ LLMAuthError         401, 403, no key
│  ├─ LLMRequestError      400, 404, 413, …: permanent, never retried
│  ├─ ContextOverflowError the request is larger than the model's window
│  └─ StreamCutError       the stream ended without its closing event
├─ ToolValidationError     arguments do not fit the tool's schema
├─ GuardrailViolation      a guardrail blocked input or output
├─ HandoffDepthExceeded    a fourth nested handoff
└─ StaleVersionError       the file changed under an edit
"""

from typing import ClassVar, Literal

from daiku.domain.base import Localizable
from daiku.texts.text import Text

FailureKind = Literal[
    "usage",
    "no_provider",
    "auth",
    "rate_limit",
    "timeout",
    "connection",
    "overloaded",
    "bad_request",
    "not_found",
    "context_overflow",
    "stream_cut",
    "content_filter",
    "format",
    "tool",
    "guardrail",
    "handoff_depth",
    "stale",
    "busy",
    "limit",
    "plan",
    "cancelled",
    "internal",
]


class Failure(Localizable):
    """An error: what happened (`message`) and what the user can do (`hint`). Also an event of a run."""

    type: ClassVar[str] = "error"
    kind: FailureKind
    message: Text
    hint: Text = Text("")
    retryable: bool = False
    cause: str | None = None
    """Type and message of the exception behind an internal failure."""


class DaikuError(Exception):
    """Base class of all expected errors; carries a `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class UsageError(DaikuError):
    """An invalid setting, option, name, or file; exit code 2."""


class LLMError(DaikuError):
    """A failed model call.

    `retry_after` is the delay in seconds that the service requested, or None. `status` is the HTTP status,
    or 0. `said` is the service's error message. `codes` and `param` are fields of its error response.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        status: int = 0,
        retry_after: float | None = None,
        said: str = "",
        codes: tuple[str, ...] = (),
        param: str = "",
    ) -> None:
        super().__init__(failure)
        self.said = said
        self.codes = codes
        self.param = param
        self.status = status
        self.retry_after = retry_after


class LLMTimeoutError(LLMError):
    """A timeout, a lost connection, 408, or 5xx."""


class LLMRateLimitError(LLMError):
    """A rate limit (429) or an overloaded service."""


class ModelLoadingError(LLMError):
    """A local server is still loading its model, which may take minutes."""


class LLMAuthError(LLMError):
    """A missing or invalid API key, or one without the required permission."""


class LLMRequestError(LLMError):
    """A permanent rejection of the request; retrying does not help."""


class ContextOverflowError(LLMError):
    """A request larger than the model's context window: compact it, never retry."""


class StreamCutError(LLMError):
    """A stream that ended without its closing event; none of its tool calls is run."""


class ToolValidationError(DaikuError):
    """Arguments that do not match the tool's schema."""


class GuardrailViolation(DaikuError):
    """An input or output that a guardrail blocked (R1.82)."""


class HandoffDepthExceeded(DaikuError):
    """A handoff that exceeds the nesting limit of three."""


class StaleVersionError(DaikuError):
    """A file that changed between reading and writing; read it again and retry."""
