"""Asking again when a reply cannot be used: five attempts, two seconds apart, the problem told each time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from daiku.core.parse import Unreadable
from daiku.domain.errors import DaikuError, LLMError

T = TypeVar("T")

ATTEMPTS = 5
WAIT = 2.0


async def attempt(
    ask: Callable[[str], Awaitable[T | Unreadable]],
    *,
    notify: Callable[[str], None],
    sleep: Callable[[float], Awaitable[None]],
    attempts: int = ATTEMPTS,
    wait: float = WAIT,
) -> T | Unreadable:
    """The first usable answer of `ask`, or the last problem (R0.96–R0.101, C0.6).

    `ask` is handed what was wrong with the answer before ("" at first) so that the model can mend
    it. `wait` in seconds between two attempts, none after the last. A failed model call is not
    tried again here: the transport has done that already, and the two never multiply (X.1).
    Raises LLMError.
    """
    problem = ""
    for turn in range(1, attempts + 1):
        try:
            answer = await ask(problem)
        except LLMError as wrong:
            notify(f"Error occurred: {wrong}")
            raise
        except (DaikuError, ValueError) as wrong:
            answer = Unreadable(str(wrong))
        if not isinstance(answer, Unreadable):
            return answer
        problem = answer.problem
        notify(f"Error occurred: {problem}")
        if turn < attempts:
            notify(f"Retrying in {wait:g} seconds...")
            await sleep(wait)
    notify("All retry attempts failed")
    return Unreadable(problem)
