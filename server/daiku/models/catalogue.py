"""Catalog of known models: context windows, limits, prices, thinking modes, and spellings of names."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.config import Price
from daiku.domain.messages import ModelInfo, Usage
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

Thinking = Literal["", "budget", "adaptive", "always", "between_tools", "level", "effort"]
"""How thinking is requested: a token budget (older Claude, Gemini 2.5); adaptive, can be disabled; always on; can be
disabled only `between_tools`; a level (Gemini 3); a reasoning effort (OpenAI)."""

LongPrice = tuple[int, float, float]
"""Price step: prompt tokens above which it applies, factor for input (also cached), factor for output."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model as its maker describes it. Prices in USD per million tokens, None if unknown."""

    provider: str
    name: str
    context: int
    max_output: int
    price: Price | None = None
    long: LongPrice | None = None
    thinking: Thinking = ""
    images: bool = True
    tools: bool = True
    trait: Text = NO_TEXT


def _price(input_: float, output: float, cached: float | None = None) -> Price:
    return Price(input=input_, output=output, cached=cached)


K, M = 1_000, 1_000_000
_OVER_272K: LongPrice = (272 * K, 2.0, 1.5)
_OVER_200K: LongPrice = (200 * K, 2.0, 1.5)
TRAITS = {
    "anthropic": text("llm.trait.anthropic"),
    "openai": text("llm.trait.openai"),
    "gemini": text("llm.trait.gemini"),
}
_TEXT_ONLY = {"gpt-4", "gpt-3.5-turbo", "o3-mini", "gemini-pro"}


def _model(
    maker: str,
    name: str,
    context: int,
    max_output: int,
    price: Price | None,
    thinking: Thinking = "",
    long: LongPrice | None = None,
) -> KnownModel:
    images = name not in _TEXT_ONLY
    return KnownModel(maker, name, context, max_output, price, long, thinking, images, trait=TRAITS[maker])


_claude, _openai, _gemini = (partial(_model, maker) for maker in ("anthropic", "openai", "gemini"))

# Newest first within a provider: lists of models keep this order.
KNOWN: tuple[KnownModel, ...] = (
    _claude("claude-opus-5-5", M, 128 * K, _price(4, 20, 0.2), "always"),
    _claude("claude-sonnet-5-5", M, 128 * K, _price(2, 10, 0.2), "between_tools"),
    _claude("claude-haiku-5-5", M, 128 * K, _price(0.1, 0.5, 0.01), "adaptive", (100 * K, 5.0, 5.0)),
    _claude("claude-fable-5-2", M, 128 * K, None, "always"),
    _claude("claude-fable-5-1", M, 128 * K, _price(10, 50, 1), "always"),
    _claude("claude-fable-5", M, 128 * K, None, "always"),
    _claude("claude-opus-5", M, 128 * K, _price(5, 25, 0.5), "adaptive"),
    _claude("claude-sonnet-5", M, 128 * K, _price(2, 10, 0.2), "adaptive"),
    _claude("claude-opus-4-8", M, 128 * K, _price(5, 25, 0.5), "adaptive"),
    _claude("claude-opus-4-7", M, 128 * K, _price(5, 25, 0.5), "adaptive"),
    _claude("claude-opus-4-6", M, 128 * K, _price(5, 25, 0.5), "adaptive"),
    _claude("claude-sonnet-4-6", M, 64 * K, _price(3, 15, 0.3), "adaptive"),
    _claude("claude-opus-4-5", 200 * K, 64 * K, _price(5, 25, 0.5), "budget"),
    _claude("claude-sonnet-4-5", 200 * K, 64 * K, _price(3, 15, 0.3), "budget"),
    _claude("claude-haiku-4-5", 200 * K, 64 * K, _price(1, 5, 0.1), "budget"),
    _claude("claude-opus-4-1", 200 * K, 32 * K, _price(15, 75, 1.5), "budget"),
    _claude("claude-opus-4", 200 * K, 32 * K, _price(15, 75, 1.5), "budget"),
    _claude("claude-sonnet-4", 200 * K, 64 * K, _price(3, 15, 0.3), "budget"),
    _claude("claude-3-7-sonnet", 200 * K, 64 * K, _price(3, 15, 0.3), "budget"),
    _claude("claude-3-5-sonnet", 200 * K, 8192, _price(3, 15, 0.3)),
    _claude("claude-3-5-haiku", 200 * K, 8192, _price(0.8, 4, 0.08)),
    _claude("claude-3-opus-20240229", 200 * K, 4096, _price(15, 75, 1.5)),
    _claude("claude-3-sonnet-20240229", 200 * K, 4096, _price(3, 15, 0.3)),
    _claude("claude-3-haiku-20240307", 200 * K, 4096, _price(0.25, 1.25, 0.03)),
    _openai("gpt-6.2-astra", 1_050 * K, 128 * K, _price(8, 40, 0.4), "effort", _OVER_272K),
    _openai("gpt-6.2-sol", 1_050 * K, 128 * K, _price(2, 10, 0.2), "effort", _OVER_272K),
    _openai("gpt-6.1-sol", 1_050 * K, 128 * K, _price(2, 10, 0.2), "effort", _OVER_272K),
    _openai("gpt-6-astra", 1_050 * K, 128 * K, _price(10, 50, 1), "effort", _OVER_272K),
    _openai("gpt-6-sol", 1_050 * K, 128 * K, _price(2, 10, 0.2), "effort", _OVER_272K),
    _openai("gpt-6-luna", 1_050 * K, 128 * K, _price(0.1, 0.5, 0.01), "effort", _OVER_272K),
    _openai("gpt-5.6-sol", 1_050 * K, 128 * K, _price(4, 20, 0.4), "effort", _OVER_272K),
    _openai("gpt-5.6-terra", 1_050 * K, 128 * K, _price(2, 12, 0.2), "effort", _OVER_272K),
    _openai("gpt-5.6-luna", 1_050 * K, 128 * K, _price(0.2, 1.2, 0.02), "effort", _OVER_272K),
    _openai("gpt-5.5", 1_050 * K, 128 * K, _price(5, 30, 0.5), "effort", _OVER_272K),
    _openai("gpt-5.4", 1_050 * K, 128 * K, _price(2.5, 15, 0.25), "effort", _OVER_272K),
    _openai("gpt-5.4-mini", 400 * K, 128 * K, _price(0.75, 4.5, 0.075), "effort"),
    _openai("gpt-5.2", 400 * K, 128 * K, _price(1.75, 14, 0.175), "effort"),
    _openai("gpt-5.1", 400 * K, 128 * K, _price(1.25, 10, 0.125), "effort"),
    _openai("gpt-5", 400 * K, 128 * K, _price(1.25, 10, 0.125), "effort"),
    _openai("gpt-5-mini", 400 * K, 128 * K, _price(0.25, 2, 0.025), "effort"),
    _openai("gpt-5-nano", 400 * K, 128 * K, _price(0.05, 0.4, 0.005), "effort"),
    _openai("o3", 200 * K, 100 * K, _price(2, 8, 0.5), "effort"),
    _openai("o4-mini", 200 * K, 100 * K, _price(1.1, 4.4, 0.275), "effort"),
    _openai("o3-mini", 200 * K, 100 * K, _price(1.1, 4.4, 0.55), "effort"),
    _openai("o1", 200 * K, 100 * K, _price(15, 60, 7.5), "effort"),
    _openai("gpt-4.1", 1_047_576, 32_768, _price(2, 8, 0.5)),
    _openai("gpt-4.1-mini", 1_047_576, 32_768, _price(0.4, 1.6, 0.1)),
    _openai("gpt-4.1-nano", 1_047_576, 32_768, _price(0.1, 0.4, 0.025)),
    _openai("gpt-4o", 128 * K, 16_384, _price(2.5, 10, 1.25)),
    _openai("gpt-4o-mini", 128 * K, 16_384, _price(0.15, 0.6, 0.075)),
    _openai("gpt-4-turbo", 128 * K, 4096, _price(10, 30)),
    _openai("gpt-4", 8192, 8192, _price(30, 60)),
    _openai("gpt-3.5-turbo", 16_385, 4096, _price(0.5, 1.5)),
    _gemini("gemini-3.8-flash", 1_048_576, 65_536, _price(0.75, 3.75), "level"),
    _gemini("gemini-3.5-flash", 1_048_576, 65_536, _price(1.5, 9, 0.15), "level"),
    _gemini("gemini-3.1-pro-preview", 1_048_576, 65_536, _price(2, 12, 0.2), "level", _OVER_200K),
    _gemini("gemini-3.1-flash-lite", 1_048_576, 65_536, _price(0.25, 1.5, 0.025), "level"),
    _gemini("gemini-3-flash-preview", 1_048_576, 65_536, _price(0.5, 3, 0.05), "level"),
    _gemini("gemini-2.5-pro", 1_048_576, 65_536, _price(1.25, 10, 0.125), "budget", _OVER_200K),
    _gemini("gemini-2.5-flash", 1_048_576, 65_536, _price(0.3, 2.5, 0.03), "budget"),
    _gemini("gemini-2.5-flash-lite", 1_048_576, 65_536, _price(0.1, 0.4, 0.01), "budget"),
    _gemini("gemini-2.0-flash", 1_048_576, 8192, _price(0.1, 0.4, 0.025)),
    _gemini("gemini-pro", 32_768, 8192, _price(0.5, 1.5)),
)

SEED_MODELS = {"anthropic": "claude-3-opus-20240229", "openai": "gpt-4", "gemini": "gemini-pro"}
"""The constructor defaults of seed 0 (R0.5, R0.8, R0.11)."""

_BY_NAME = {known.name: known for known in KNOWN}
_LONGEST_FIRST = sorted(KNOWN, key=lambda known: len(known.name), reverse=True)
# models/gemini-x, publishers/google/models/x, anthropic/claude-x, eu.anthropic.claude-x-v1:0, claude-x@20250805
_PLACE = lazy(r"^(?:.*/)?(?:[a-z]{2,4}\.)?(?:anthropic\.)?")
_DATED = lazy(
    r"(?:[-@](?:\d{6,8}|\d{4}-\d\d-\d\d|latest|preview|exp|\d{2}-\d{2}|\d{3,4})|-v\d+(?::\d+)?|-preview-.*|:.*)+$"
)


@lru_cache(maxsize=256)
def find_model(name: str) -> KnownModel | None:
    """Return the catalog entry for `name`, also with a date, as a preview, or in a cloud's spelling; None if unknown.

    Another member of a family is not the same model: `gpt-5-pro` does not get the price of `gpt-5`.
    """
    plain = _PLACE.sub("", name.strip().lower())
    bare = _DATED.sub("", plain)
    for candidate in (plain, bare):
        if candidate in _BY_NAME:
            return _BY_NAME[candidate]
    return next((k for k in _LONGEST_FIRST if bare == _DATED.sub("", k.name)), None)


_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy(r"^claude[_-](\d)[_.](\d)[_-]"), r"claude-\1-\2-"),
    (lazy(r"^claude[_-]([a-z]+)[_-](\d)[_.](\d)(?=$|[_-])"), r"claude-\1-\2-\3"),
    (lazy(r"^gpt[_-](\d)_(\d)(?=$|[_-])"), r"gpt-\1.\2"),
    (lazy(r"^gemini[_-](\d)_(\d)(?=$|[_-])"), r"gemini-\1.\2"),
)
_VENDOR_NAME = lazy(r"^(claude|gpt|chatgpt|gemini|o\d)[_-]", re.IGNORECASE)


def normalize_model_name(name: str) -> str:
    """Return the maker's spelling: `gpt-4o` for `gpt_4o`, `claude-3-opus` for `claude_3_opus` (R1.43).

    A leading `provider/` stays. Names of other makers pass unchanged (C1.15).
    """
    provider, slash, model = name.strip().rpartition("/")
    if not _VENDOR_NAME.match(model):
        return name.strip()
    model = model.lower()
    for pattern, replacement in _SPELLINGS:
        model = pattern.sub(replacement, model)
    return provider + slash + model.replace("_", "-")


def build_model_info(provider: str, name: str, *, context: int = 0, max_output: int = 0) -> ModelInfo:
    """Return the ModelInfo for `name`. Values from the service take precedence over the catalog."""
    entry = find_model(name)
    if entry is None:
        return ModelInfo(provider=provider, name=name, context=context, max_output=max_output)
    return ModelInfo(
        provider=provider,
        name=name,
        context=context or entry.context,
        max_output=max_output or entry.max_output,
        tools=entry.tools,
        images=entry.images,
        thinking=bool(entry.thinking),
        trait=entry.trait,
    )


def list_known_models(provider: str) -> tuple[ModelInfo, ...]:
    """Return the known models of a provider, newest first."""
    return tuple(build_model_info(provider, known.name) for known in KNOWN if known.provider == provider)


def find_price_step(model: str, prices: dict[str, Price]) -> int:
    """Return the prompt tokens above which `model` costs more; 0 if it does not, or if `prices` set one price."""
    entry = find_model(model)
    if entry is None or entry.long is None or prices.get(model) or prices.get("*"):
        return 0
    return entry.long[0]


CACHE_WRITE_FACTOR = 1.25
"""Factor of the input price that Anthropic charges for tokens written to its cache."""


def compute_cost(
    usage: Usage, model: str, prices: dict[str, Price], *, cache_writes: int = 0
) -> float | None:
    """Return the USD for `usage`, or None if no price is known.

    `prices` from the settings override the catalog. `cache_writes` is the number of prompt tokens written to a cache at a
    surcharge.
    """
    entry = find_model(model)
    custom_price = prices.get(model) or prices.get("*")
    price = custom_price or (entry.price if entry is not None else None)
    if price is None:
        return None
    input_factor, output_factor = 1.0, 1.0
    if (
        custom_price is None
        and entry is not None
        and entry.long is not None
        and usage.prompt_tokens > entry.long[0]
    ):
        _, input_factor, output_factor = entry.long
    cached_price = price.input if price.cached is None else price.cached
    uncached = max(0, usage.prompt_tokens - usage.cached_tokens - cache_writes)
    prompt = (
        uncached * price.input
        + usage.cached_tokens * cached_price
        + cache_writes * price.input * CACHE_WRITE_FACTOR
    )
    return (prompt * input_factor + usage.completion_tokens * price.output * output_factor) / M
