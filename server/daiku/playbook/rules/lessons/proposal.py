"""Proposals: lessons from runs, with their evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from daiku.dataclass import dataclass, replace
from daiku.domain.playbook import LearntFrom, Origin
from daiku.texts.rules.patterns import lazy

Taught = Literal["command_replaced", "command_before", "rejected", "corrected", "insight"]
"""Reasons of a proposal.

A command passed in place of a failed one, or made a failed one pass; a rejection with a reason; a correction
by the user; an insight of a model.
"""
Redact = Callable[[str], str]
_SPAN = lazy(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed lesson.

    `failed`: the commands that fail according to it. `about`: the bullet that it updates, as named by a
    model; empty for none.
    """

    section: str
    content: str
    why: Taught
    evidence: tuple[LearntFrom, ...]
    keywords: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    origin: Origin = "rule"
    about: str = ""


def find_code_spans(text: str) -> tuple[str, ...]:
    """Return the distinct code spans in `text`, with normalized white space."""
    return tuple(dict.fromkeys(" ".join(span.split()) for span in _SPAN.findall(text) if span.strip()))


def redact_proposal(proposal: Proposal, redact: Redact) -> Proposal:
    """Return the proposal without secrets."""
    return replace(
        proposal,
        section=redact(proposal.section),
        content=redact(proposal.content),
        keywords=tuple(map(redact, proposal.keywords)),
        failed=tuple(map(redact, proposal.failed)),
    )
