"""Proposals: what a run taught, with its evidence, before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from daiku.dataclass import dataclass, replace
from daiku.domain.playbook import LearntFrom, Origin
from daiku.texts.rules.patterns import lazy

Taught = Literal["command_replaced", "command_before", "rejected", "corrected", "insight"]
"""What taught it: a command that passed where another had failed; one that made a failed one pass; a rejection with its
reason; a correction by the person; a model's insight."""
Redact = Callable[[str], str]
_SPAN = lazy(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A lesson that is proposed. `failed`: the commands that it says fail, by which it contradicts other advice. `about`: the
    bullet that it is to change, as a model has it; empty where it names none."""

    section: str
    content: str
    why: Taught
    evidence: tuple[LearntFrom, ...]
    keywords: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    origin: Origin = "rule"
    about: str = ""


def code_spans(text: str) -> tuple[str, ...]:
    """What stands between backquotes in `text`, white space between words as one blank: its commands and names."""
    return tuple(dict.fromkeys(" ".join(found.split()) for found in _SPAN.findall(text) if found.strip()))


def redacted(proposal: Proposal, redact: Redact) -> Proposal:
    """The proposal with every secret taken out of all that it says."""
    return replace(
        proposal,
        section=redact(proposal.section),
        content=redact(proposal.content),
        keywords=tuple(map(redact, proposal.keywords)),
        failed=tuple(map(redact, proposal.failed)),
    )
