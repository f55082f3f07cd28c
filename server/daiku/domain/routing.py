"""A router's answer: which agents a request is for."""

from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.messages import Usage


@dataclass(frozen=True, slots=True)
class Route:
    """Whom a request is for, in this order; nobody in particular where `agents` is empty. `by` says what decided it,
    `usage` what a model used for that."""

    agents: tuple[str, ...] = ()
    by: Literal["rule", "model", "default"] = "default"
    usage: Usage | None = None
