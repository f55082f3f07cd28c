"""What a run asks any model by; and the families of models: how each is told to edit, how hard it thinks."""

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
    """What follows from a model's family. `effort` and `verbosity` are what is asked of it where the settings
    say nothing, "" asks for nothing; only the maker's own service is asked. `interleaved`: its thinking
    between tool calls has to be asked for."""

    family: Family = "other"
    edits: EditForm = "search_replace"
    effort: Effort = ""
    verbosity: Verbosity = ""
    interleaved: bool = False


ANY_MODEL = ModelTraits()

_PATCHING = lazy(r"gpt-(?:4\.1|oss|[5-9])|^o3(?!-mini)|^o4|codex")
"""The models of OpenAI that were trained to write its patches; the older ones replace text more surely."""
_SPEAKING = lazy(r"^gpt-[5-9]")
"""Those that take a verbosity."""
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
def traits_of(model: str) -> ModelTraits:
    """The traits of a model by its name, however a service spells it; those of any model where it is unknown."""
    from daiku.models.catalogue import find_model  # when used

    name = model.strip().lower().rpartition("/")[2]
    family = _family(name)
    known = find_model(model)
    thinking = known.thinking if known is not None else ""
    match family:
        case "gpt":
            return ModelTraits(
                family,
                "apply_patch" if _PATCHING.search(name) else "search_replace",
                effort="medium" if thinking else "",
                verbosity="low" if known is not None and _SPEAKING.search(name) else "",
            )
        case "claude" if thinking == "budget":  # later ones think as they see fit
            return ModelTraits(family, effort="medium", interleaved="claude-3" not in name)
        case _:
            return ModelTraits(family)


def _family(name: str) -> Family:
    for pattern, family in _FAMILIES:
        if pattern.search(name):
            return family
    return "other"


class Model(Protocol):
    """A resolved model (R1.2): retries, fallback and prices are behind it. `LLMAdapter` is one, `FakeLLM` another."""

    @property
    def name(self) -> str:
        """`provider/model`, as people see it."""
        ...

    @property
    def context(self) -> int:
        """Its window in tokens; 0 where unknown."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """What follows from its family: how it edits best, how it is spoken to."""
        ...

    @property
    def price_step(self) -> int:
        """Prompt tokens above which it costs more; 0 where it does not."""
        ...

    @property
    def tool_protocol(self) -> ToolProtocol:
        """How it is told of tools: by its service, or in a text form of ours."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...

    def quote(self, request: ModelRequest) -> Quote:
        """What the call can come to at worst, a fallback's price included."""
        ...


@dataclass(slots=True)
class Overrides:
    """Overrides that tests set for the process: a model that answers for all others, and a ban on model services."""

    model: Model | None = None
    forbidden: bool = False


OVERRIDES = Overrides()
