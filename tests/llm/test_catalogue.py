from __future__ import annotations

import pytest

from daiku.domain.config import Price
from daiku.domain.messages import Usage
from daiku.models.catalogue import (
    KNOWN,
    SEED_MODELS,
    TRAITS,
    build_model_info,
    compute_cost,
    find_model,
    list_known_models,
    normalize_model_name,
)
from daiku.models.table import PROVIDERS
from tests.cases import for_each


@for_each(
    ("given", "expected"),
    [
        ("gpt_4o", "gpt-4o"),
        ("gpt_4o_mini", "gpt-4o-mini"),
        ("gpt_4_turbo", "gpt-4-turbo"),
        ("gpt_4_1", "gpt-4.1"),
        ("GPT-4o", "gpt-4o"),
        ("claude_3_opus", "claude-3-opus"),
        ("claude_3_opus_20240229", "claude-3-opus-20240229"),
        ("claude_3_5_sonnet", "claude-3-5-sonnet"),
        ("claude-3.5-sonnet", "claude-3-5-sonnet"),
        ("claude_opus_5_5", "claude-opus-5-5"),
        ("claude-sonnet-5.5", "claude-sonnet-5-5"),
        ("gemini_2_5_pro", "gemini-2.5-pro"),
        ("o3_mini", "o3-mini"),
        ("anthropic/claude_3_opus", "anthropic/claude-3-opus"),
        ("my_own_model", "my_own_model"),
        ("qwen2.5-coder:7b_q4", "qwen2.5-coder:7b_q4"),
        ("", ""),
    ],
)
def test_names_are_brought_to_their_makers_spelling(given: str, expected: str) -> None:
    """C1.15, R1.43: models' names as their makers write them."""
    assert normalize_model_name(given) == expected
    assert normalize_model_name(expected) == expected


def test_every_name_in_the_table_is_already_normal_and_finds_itself() -> None:
    for entry in KNOWN:
        assert normalize_model_name(entry.name) == entry.name
        assert find_model(entry.name) is entry


@for_each(
    ("given", "expected"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-opus", "claude-3-opus-20240229"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5", "claude-opus-5"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-5-pro", None),
        ("gpt-4o-audio-preview", None),
        ("llama3.2", None),
        ("", None),
    ],
)
def test_dated_and_hosted_names_find_their_model_and_relatives_do_not(
    given: str, expected: str | None
) -> None:
    found = find_model(given)
    assert (found.name if found else None) == expected


def test_the_seeds_models_defaults_and_traits_are_known() -> None:
    names = {entry.name for entry in KNOWN}
    assert {"claude-3-opus-20240229", "claude-3-sonnet-20240229", "claude-3-haiku-20240307"} <= names
    assert {"gpt-4", "gpt-4-turbo", "gemini-pro"} <= names
    assert SEED_MODELS == {"anthropic": "claude-3-opus-20240229", "openai": "gpt-4", "gemini": "gemini-pro"}
    assert "long context" in TRAITS["anthropic"]
    assert "general purpose" in build_model_info("openai", "gpt-4").trait
    assert "cost efficient" in build_model_info("gemini", "gemini-pro").trait


def test_the_default_models_are_offered_with_a_window_and_a_price() -> None:
    for provider in ("anthropic", "openai", "gemini"):
        entry = find_model(PROVIDERS[provider].default_model)
        assert entry is not None
        assert entry.price is not None
        assert PROVIDERS[provider].default_model in {model.name for model in list_known_models(provider)}


def test_what_the_service_says_goes_before_the_table() -> None:
    assert build_model_info("gemini", "gemini-2.5-pro", context=5).context == 5
    assert build_model_info("ollama", "llama3.2").context == 0


def test_cost_counts_cached_tokens_at_their_own_price() -> None:
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=900_000, completion_tokens=100_000)
    # 0.1 M × 4 + 0.9 M × 0.2 + 0.1 M × 20
    assert compute_cost(usage, "claude-opus-5-5", {}) == pytest.approx(0.4 + 0.18 + 2.0)


def test_cost_counts_tokens_written_to_the_cache_a_quarter_higher() -> None:
    usage = Usage(prompt_tokens=1_000_000)
    assert compute_cost(usage, "claude-opus-5-5", {}, cache_writes=1_000_000) == pytest.approx(5.0)


def test_long_prompts_cost_more_where_the_service_says_so() -> None:
    short = compute_cost(Usage(prompt_tokens=272_000), "gpt-6-sol", {})
    long = compute_cost(Usage(prompt_tokens=272_001), "gpt-6-sol", {})
    assert short == pytest.approx(0.544)
    assert long == pytest.approx(1.088, rel=1e-4)


def test_the_settings_price_goes_before_the_table_and_unknown_stays_unknown() -> None:
    usage = Usage(prompt_tokens=2_000_000, completion_tokens=1_000_000)
    assert compute_cost(usage, "gpt-4o", {"gpt-4o": Price(input=1, output=1)}) == pytest.approx(3.0)
    assert compute_cost(usage, "my-model", {"*": Price(input=0.5)}) == pytest.approx(1.0)
    assert compute_cost(usage, "my-model", {}) is None
