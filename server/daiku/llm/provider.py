"""What every provider is: a stream of model events, a list of models, a token count."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest


class Provider(Protocol):
    """One model service. Its methods raise only `LLMError` kinds and CancelledError.

    `stream` yields deltas as they arrive and ends with exactly one `Reply`; it does not retry.
    Cancelling the consumer closes the connection.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...

    async def models(self) -> tuple[ModelInfo, ...]:
        """What is on offer, with context windows where the service tells."""
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """From the service's counting endpoint; None where it has none."""
        ...

    async def aclose(self) -> None: ...
