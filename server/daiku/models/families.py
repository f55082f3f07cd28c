"""Model families and their traits, the interface of a model to a run, and overrides for tests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Literal, Protocol

from daiku.dataclass import dataclass
from daiku.domain.config import ToolProtocol
from daiku.domain.messages import Effort, ModelEvent, ModelRequest
from daiku.domain.tools import EditForm
from daiku.run.rules.budget import Quote
from daiku.texts.rules.patterns import lazy

Family = Literal["gpt", "claude", "gemini", "glm", "qwen", "kimi", "deepseek", "llama", "mistral", "other"]
Verbosity = Literal["", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Traits of a model family.

    `effort` and `verbosity` are the values to request if the settings name none, "" requests nothing; they are sent
    only to the maker's own service. `interleaved` means that thinking between tool calls must be requested.
    """

    family: Family = "other"
    edits: EditForm = "search_replace"
    effort: Effort = ""
    verbosity: Verbosity = ""
    interleaved: bool = False


ANY_MODEL = ModelTraits()

_WRITES_PATCHES = lazy(r"gpt-(?:4\.1|oss|[5-9])|^o3(?!-mini)|^o4|codex")
"""OpenAI models trained to write its patch format; older ones are better at search and replace."""
_HAS_VERBOSITY = lazy(r"^gpt-[5-9]")
"""Models that accept a verbosity."""
_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = (
    (lazy(r"gpt|^o[1-9](?:-|$)|codex|davinci"), "gpt"),
    (lazy(r"claude"), "claude"),
    (lazy(r"gemini|gemma"), "gemini"),
    (lazy(r"glm"), "glm"),
    (lazy(r"qwen|qwq"), "qwen"),
    (lazy(r"kimi|moonshot"), "kimi"),
    (lazy(r"deepseek"), "deepseek"),
    (lazy(r"llama"), "llama"),
    (lazy(r"mi[sx]tral|codestral|devstral|magistral"), "mistral"),
)


@lru_cache(maxsize=256)
def find_traits(model: str) -> ModelTraits:
    """Return the traits of a model by its name in any service's spelling; the defaults for an unknown model."""
    from daiku.models.catalogue import find_model  # when used

    name = model.strip().lower().rpartition("/")[2]
    family = _find_family(name)
    entry = find_model(model)
    thinking = entry.thinking if entry is not None else ""
    match family:
        case "gpt":
            return ModelTraits(
                family,
                "apply_patch" if _WRITES_PATCHES.search(name) else "search_replace",
                effort="medium" if thinking else "",
                verbosity="low" if entry is not None and _HAS_VERBOSITY.search(name) else "",
            )
        case "claude" if thinking == "budget":  # later ones choose their effort
            return ModelTraits(family, effort="medium", interleaved="claude-3" not in name)
        case _:
            return ModelTraits(family)


def _find_family(name: str) -> Family:
    for pattern, family in _FAMILIES:
        if pattern.search(name):
            return family
    return "other"


class Model(Protocol):
    """A resolved model with retries, fallback, and prices (R1.2). Implementations: `LLMAdapter`, `FakeLLM`."""

    @property
    def name(self) -> str:
        """`provider/model`, as shown to the user."""
        ...

    @property
    def context(self) -> int:
        """Context window in tokens; 0 if unknown."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """Traits of its family."""
        ...

    @property
    def price_step(self) -> int:
        """Prompt tokens above which the price rises; 0 if it does not."""
        ...

    @property
    def tool_protocol(self) -> ToolProtocol:
        """How tools are offered: natively or in a text protocol."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...

    def quote(self, request: ModelRequest) -> Quote:
        """Return the worst-case cost of the call, including the fallback."""
        ...


@dataclass(slots=True)
class Overrides:
    """Process-wide overrides for tests: a model that replaces all others, and a ban on model services."""

    model: Model | None = None
    forbidden: bool = False


OVERRIDES = Overrides()
