"""How much a template may do while it is filled in: steps of its loops, and characters that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template

MOST_STEPS = 100_000
"""Steps of all loops over numbers together."""
LARGEST = 4_000_000
"""Characters of a prompt that is filled in; no model reads so much."""
_STEPS: ContextVar[list[int]] = ContextVar("steps that are left")


def within_bounds(template: Template, values: Mapping[str, object]) -> str:
    """The template filled in. Raises jinja2.TemplateError, OverflowError: it is too much."""
    told, size = list[str](), 0
    token = _STEPS.set([MOST_STEPS])
    try:
        for piece in template.generate(**values):
            size += len(piece)
            if size > LARGEST:
                raise OverflowError(f"what comes of it is longer than {LARGEST:,} characters")
            told.append(piece)
    finally:
        _STEPS.reset(token)
    return "".join(told)


def counted_range(*bounds: int) -> range:
    """`range` for templates. Raises OverflowError where their loops go on for too long, one within the other too."""
    made, left = range(*bounds), _STEPS.get()
    left[0] -= len(made)
    if left[0] < 0:
        raise OverflowError(f"its loops take more than {MOST_STEPS:,} steps")
    return made
