"""Asking again: how often, how far apart, what is said, and what is never asked again."""

from __future__ import annotations

import pytest

from daiku.core.attempts import attempt
from daiku.core.parse import Unreadable
from daiku.domain.errors import Failure, LLMTimeoutError


class Recorded:
    """What was said and how long was waited, with answers played one by one."""

    def __init__(self, *answers: str | Unreadable | Exception) -> None:
        self.answers = list(answers)
        self.said: list[str] = []
        self.waits: list[float] = []
        self.problems: list[str] = []

    async def ask(self, problem: str) -> str | Unreadable:
        self.problems.append(problem)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self) -> str | Unreadable:
        return await attempt(self.ask, notify=self.said.append, sleep=self.sleep)


async def test_the_first_good_answer_is_returned_at_once() -> None:
    played = Recorded("yes")
    assert await played.run() == "yes"
    assert (played.said, played.waits) == ([], [])


async def test_each_attempt_hears_what_was_wrong_before() -> None:
    played = Recorded(Unreadable("no JSON"), ValueError("boom"), "yes")
    assert await played.run() == "yes"
    assert played.problems == ["", "no JSON", "boom"]
    assert played.said == [
        "Error occurred: no JSON",
        "Retrying in 2 seconds...",
        "Error occurred: boom",
        "Retrying in 2 seconds...",
    ]


async def test_five_attempts_and_four_waits_end_in_a_typed_failure() -> None:
    played = Recorded(*[Unreadable(f"bad {n}") for n in range(1, 7)])
    assert await played.run() == Unreadable("bad 5")
    assert played.waits == [2.0] * 4
    assert len(played.problems) == 5
    assert played.said[-1] == "All retry attempts failed"


async def test_a_failed_model_call_ends_it() -> None:
    wrong = LLMTimeoutError(Failure(kind="timeout", message="no answer"))
    played = Recorded(wrong, "yes")
    with pytest.raises(LLMTimeoutError):
        await played.run()
    assert played.said == ["Error occurred: no answer"]
    assert played.waits == []
