"""Retries of a refused request with one change after another."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.dataclass import dataclass
from daiku.domain.errors import ContextOverflowError, Failure, LLMError
from daiku.domain.messages import ModelRequest
from daiku.models.cures import Cures, may_be_path
from daiku.models.history.parts import Part, describe_removal, find_removable_parts
from daiku.models.retries.policy import is_transient
from daiku.models.tokens import estimate_request
from daiku.texts.text import Text, joined, text

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
