"""What the person is told of prompts of the workspace that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.domain.events import Notice
from daiku.prompts import Problem
from daiku.texts.text import text


def notices_of(problems: Iterable[Problem]) -> tuple[Notice, ...]:
    """A warning for each: the file, the line where there is one, and why."""
    said = (
        text("prompts.broken", file=each.file, line=each.line, why=each.why)
        if each.line
        else text("prompts.broken_file", file=each.file, why=each.why)
        for each in problems
    )
    return tuple(Notice(level="warning", text=each) for each in said)
