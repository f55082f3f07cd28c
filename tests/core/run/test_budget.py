"""The budget: what a call may come to is reserved, and one that does not fit is not made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.errors import Failure
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits
from daiku.run.rules.budget import (
    LEAST_OUTPUT,
    Budget,
    Hold,
    Quote,
    open_budget,
    reserve,
    settle,
    worst_quote,
)
from tests.cases import for_each

CHEAP = Quote(1000, 4000, 0.001, 0.000_004)


def budget(**limits: float) -> Budget:
    return open_budget(RunLimits.model_validate(limits), Usage(), 0)


def test_without_limits_nothing_is_held_back() -> None:
    found = reserve(budget(), CHEAP)
    assert not isinstance(found, Failure)
    assert found[1].max_output == 0


def test_an_answer_is_limited_to_what_is_left() -> None:
    found = reserve(budget(max_tokens=2000), CHEAP)
    assert not isinstance(found, Failure)
    assert found[1] == Hold(2000, 0.001 + 1000 * 0.000_004, 1000)


@for_each(
    ("limits", "name", "word"),
    [({"max_tokens": 1100}, "tokens", "token"), ({"max_cost": 0.0015}, "cost", "cost")],
)
def test_a_call_that_does_not_fit_is_refused_in_words(limits: dict[str, float], name: str, word: str) -> None:
    found = reserve(budget(**limits), CHEAP)
    assert isinstance(found, Failure)
    assert found.kind == "limit"
    assert f"The {word} limit leaves no room" in found.message
    assert f"limits.max_{name}" in found.hint


def test_without_a_price_only_tokens_count() -> None:
    unknown = Quote(1000, 4000)
    assert not isinstance(reserve(budget(max_cost=0.000_001), unknown), Failure)
    assert isinstance(reserve(budget(max_cost=1, max_tokens=1000), unknown), Failure)


def test_the_dearest_of_model_and_fallback_counts() -> None:
    fallback = Quote(1200, 2000, 0.5, 0.001)
    assert worst_quote([CHEAP, fallback]) == Quote(1200, 4000, 0.5, 0.001)
    assert worst_quote([CHEAP, Quote(10, 10)]) == CHEAP
    assert isinstance(reserve(budget(max_cost=0.3), worst_quote([CHEAP, fallback])), Failure)


def test_calls_side_by_side_share_what_is_left() -> None:
    first = reserve(budget(max_tokens=6000), CHEAP)
    assert not isinstance(first, Failure)
    assert isinstance(reserve(first[0], CHEAP), Failure)
    freed = settle(first[0], first[1], Usage(prompt_tokens=900, completion_tokens=100))
    second = reserve(freed, CHEAP)
    assert not isinstance(second, Failure)
    assert second[1].max_output == 0


def test_a_resumed_run_goes_on_with_what_it_used() -> None:
    used = Usage(prompt_tokens=5000, completion_tokens=500, cost=0.2)
    assert isinstance(reserve(open_budget(RunLimits(max_tokens=6000), used, 3), CHEAP), Failure)


QUOTES = st.builds(
    Quote,
    st.integers(1, 5000),
    st.integers(1, 8000),
    st.none() | st.floats(0, 0.5),
    st.none() | st.floats(0, 0.001),
).map(lambda q: q if q.prompt_cost is not None else q._replace(output_price=None))


@given(
    st.integers(0, 20_000),
    st.floats(0, 2),
    st.lists(st.tuples(QUOTES, st.floats(0, 1), st.floats(0, 1), st.integers(0, 3)), max_size=30),
)
def test_what_is_spent_never_exceeds_the_limits_when_calls_keep_to_their_quotes(
    max_tokens: int, max_cost: float, calls: list[tuple[Quote, float, float, int]]
) -> None:
    now = budget(max_tokens=max_tokens, max_cost=max_cost)
    open_calls: list[tuple[Hold, Usage]] = []
    for quote, part_in, part_out, finish in calls:
        found = reserve(now, quote)
        if not isinstance(found, Failure):
            now, hold = found
            assert hold.max_output == 0 or hold.max_output >= min(LEAST_OUTPUT, quote.output)
            prompt = int(quote.prompt * part_in)
            answer = int((hold.max_output or quote.output) * part_out)
            cost = (quote.prompt_cost or 0) * part_in + answer * (quote.output_price or 0)
            open_calls.append((hold, Usage(prompt_tokens=prompt, completion_tokens=answer, cost=cost)))
        while len(open_calls) > finish:
            now = settle(now, *open_calls.pop(0))
    for hold, usage in open_calls:
        now = settle(now, hold, usage)
    assert not now.held
    assert not max_tokens or now.tokens <= max_tokens
    priced = all(q.prompt_cost is not None for q, *_ in calls)
    assert not max_cost or not priced or now.cost <= max_cost + 1e-6


def test_a_call_that_came_to_nothing_gives_back_what_was_set_aside() -> None:
    before = budget(max_tokens=6000)
    found = reserve(before, CHEAP)
    assert not isinstance(found, Failure)
    assert settle(*found, None) == before
