"""Everything that can go wrong, as a value (`Failure`) and as the exceptions that carry it.

DaikuError                 anything we expect; carries a Failure
├─ UsageError              the person asked for something that cannot be (setting, option, name)
├─ LLMError                a model call failed
│  ├─ LLMTimeoutError      no progress for too long, connection lost, 408, 5xx
│  ├─ LLMRateLimitError    429, overloaded
│  ├─ ModelLoadingError    a server is still loading its model
│  ├─ LLMAuthError         401, 403, no key
│  ├─ LLMRequestError      400, 404, 413, …: asking again changes nothing
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
    """What is wrong (`message`), and what the person can do (`hint`). As an event: the run meets it."""

    type: ClassVar[str] = "error"
    kind: FailureKind
    message: Text
    hint: Text = Text("")
    retryable: bool = False
    cause: str | None = None
    """Type and message of the exception behind an internal failure."""


class DaikuError(Exception):
    """Base of all expected errors; `failure` says what a person and the wire need."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class UsageError(DaikuError):
    """A wrong setting, option, name or file; exit code 2."""


class LLMError(DaikuError):
    """A model call failed. `retry_after` in seconds where the service said so; `status` of HTTP or 0; `said` is what
    the service answered, in its own words; `codes` and `param` are the fields of its error that say why."""

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
    """No progress for too long, a lost connection, 408 or 5xx."""


class LLMRateLimitError(LLMError):
    """429 or overloaded."""


class ModelLoadingError(LLMError):
    """A server of this machine is still loading its model, which may take minutes."""


class LLMAuthError(LLMError):
    """No key, a wrong key, or one that may not do this."""


class LLMRequestError(LLMError):
    """The service refused the request itself; asking again changes nothing."""


class ContextOverflowError(LLMError):
    """The request is larger than the model's window: compact, never retry."""


class StreamCutError(LLMError):
    """The stream ended without its closing event; none of its tool calls is run."""


class ToolValidationError(DaikuError):
    """Arguments that do not fit the tool's schema."""


class GuardrailViolation(DaikuError):
    """A guardrail blocked an input or an output (R1.82)."""


class HandoffDepthExceeded(DaikuError):
    """A fourth nested handoff."""


class StaleVersionError(DaikuError):
    """The file moved on between reading and writing; read again and retry."""
