"""A run's budget: calls that do not fit are never made, also those of a fallback or a child."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest

from daiku.domain.config import Price, ProviderSettings
from daiku.domain.errors import DaikuError, Failure, LLMTimeoutError
from daiku.domain.messages import (
    AssistantMessage,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    Usage,
    UserMessage,
)
from daiku.domain.runs import RunLimits
from daiku.models.adapter import LLMAdapter
from daiku.models.provider import ModelChoice
from daiku.models.retries.policy import RetryPolicy
from daiku.models.table import PROVIDERS
from daiku.run.rules.budget import Quote, open_budget
from daiku.run.run_budget import Metered, RunBudget
from daiku.texts.text import Text

ASK = ModelRequest(model="", system="", messages=(UserMessage(text="mend it " * 100),))


@dataclass
class Wordy:
    """A provider that always says as much as it may; `down` is out of reach."""

    name: str = "compatible"
    down: bool = False
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if self.down:
            raise LLMTimeoutError(Failure(kind="timeout", message=Text("No answer."), retryable=True))
        self.asked.append(request)
        used = Usage(prompt_tokens=200, completion_tokens=request.max_output or 16_384)
        yield Reply(AssistantMessage(text=Text("words")), used, "stop")

    async def models(self) -> tuple[ModelInfo, ...]:
        return ()

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def aclose(self) -> None: ...


def adapter(provider: Wordy, price: Price | None, fallback: LLMAdapter | None = None) -> LLMAdapter:
    return LLMAdapter(
        choice=ModelChoice("compatible", "m"),
        entry=PROVIDERS["compatible"],
        provider=provider,
        settings=ProviderSettings(price={"m": price} if price else {}),
        fallback=lambda: fallback,
        policy=RetryPolicy(retries=1),
    )


def purse(**limits: float) -> RunBudget:
    return RunBudget(open_budget(RunLimits.model_validate(limits), Usage(), 0))


async def until_refused(model: Metered, most: int = 50) -> Failure | None:
    for _ in range(most):
        try:
            async for _piece in model.stream(ASK):
                pass
        except DaikuError as error:
            return error.failure
    return None


@pytest.mark.parametrize("limits", [{"max_tokens": 20_000}, {"max_cost": 0.05}])
async def test_a_run_of_calls_never_spends_more_than_its_limit(limits: dict[str, float]) -> None:
    provider, bound = Wordy(), purse(**limits)
    said: list[str] = []
    failure = await until_refused(Metered(adapter(provider, Price(input=1, output=2)), bound, said.append))
    assert failure is not None
    assert failure.kind == "limit"
    assert provider.asked
    assert bound.budget.tokens <= limits.get("max_tokens", 10**9)
    assert bound.budget.cost <= limits.get("max_cost", 10**9)
    assert said == []


async def test_a_fallback_that_costs_more_is_what_is_reserved() -> None:
    dear = Wordy()
    fallback = replace(adapter(dear, Price(input=100, output=1000)), choice=ModelChoice("compatible", "m"))
    cheap = adapter(Wordy(down=True), Price(input=0.01, output=0.01), fallback)
    bound = purse(max_cost=0.05)
    failure = await until_refused(Metered(cheap, bound, lambda _: None), 3)
    assert failure is not None
    assert failure.kind == "limit"
    assert dear.asked == []


async def test_an_unknown_price_is_told_once_and_tokens_still_hold() -> None:
    said: list[str] = []
    bound = purse(max_cost=0.01, max_tokens=40_000)
    failure = await until_refused(Metered(adapter(Wordy(), None), bound, said.append))
    assert failure is not None
    assert "The token limit" in failure.message
    assert bound.budget.tokens <= 40_000
    assert len(said) == 1
    assert "limits.max_cost cannot hold" in said[0]


async def test_children_draw_on_one_purse() -> None:
    bound = purse(max_tokens=20_000)
    parent = Metered(adapter(Wordy(), None), bound, lambda _: None)
    child = Metered(adapter(Wordy(), None), bound, lambda _: None)
    assert await until_refused(child) is not None
    assert await until_refused(parent, 1) is not None
    assert bound.budget.tokens <= 20_000


async def test_a_call_that_fails_gives_back_what_was_reserved() -> None:
    bound = purse(max_tokens=20_000)

    async def fails() -> None:
        async with bound.spend(Quote(100, 1000)):
            raise DaikuError(Failure(kind="timeout", message=Text("No answer.")))

    with pytest.raises(DaikuError):
        await fails()
    assert bound.budget == purse(max_tokens=20_000).budget


def test_rounds_are_those_of_the_whole_tree() -> None:
    bound = purse(max_rounds=2)
    for _ in range(2):
        bound.turn()
    with pytest.raises(DaikuError, match="The round limit"):
        bound.turn()


async def test_calls_at_once_wait_for_what_others_hold_and_all_are_made() -> None:
    """Each reserves all that is left, and uses a tenth of it."""
    bound = purse(max_tokens=40_000)
    under_way, most, made = 0, 0, 0

    async def call() -> None:
        nonlocal under_way, most, made
        async with bound.spend(Quote(1_000, 38_000)) as spending:
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            spending.usage = Usage(prompt_tokens=1_000, completion_tokens=3_000)
            made += 1
            under_way -= 1

    async with asyncio.timeout(5):
        await asyncio.gather(*(call() for _ in range(6)))
    assert (made, most, bound.budget.tokens, bound.budget.held) == (6, 1, 24_000, ())
    assert bound.refused is None


@pytest.mark.parametrize("fails", [True, False])
async def test_what_never_fits_is_refused_at_once_and_who_waits_is_told_when_it_is_over(fails: bool) -> None:
    bound = purse(max_tokens=10_000)
    refused: list[str] = []

    async def wait(quote: Quote) -> None:
        try:
            async with bound.spend(quote):
                pass
        except DaikuError as error:
            refused.append(error.failure.kind)

    async def hold() -> None:
        async with bound.spend(Quote(1_000, 9_000)) as spending:
            large = asyncio.create_task(wait(Quote(20_000, 100)))
            small = asyncio.create_task(wait(Quote(1_000, 9_000)))
            await asyncio.wait_for(large, 5)  # no waiting helps
            assert not small.done()
            spending.usage = Usage(prompt_tokens=1_000, completion_tokens=9_000 if fails else 100)
        await asyncio.wait_for(small, 5)

    await hold()
    assert refused == ["limit", "limit"] if fails else refused == ["limit"]


async def test_who_waits_may_be_cancelled() -> None:
    bound = purse(max_tokens=10_000)

    async def second() -> None:
        async with bound.spend(Quote(1_000, 9_000)):
            raise AssertionError("there is no room")

    async with bound.spend(Quote(1_000, 9_000)):
        task = asyncio.create_task(second())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    async with asyncio.timeout(5), bound.spend(Quote(1_000, 9_000)):
        pass
