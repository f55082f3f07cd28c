"""What a run is asked that works an item of a forge; texts are fenced already."""

from __future__ import annotations

from daiku.domain.base import Frozen


class ItemVariables(Frozen):
    """`instructions` and `comments` are of people who may decide, `data` and `others` of anybody; `feedback` is what
    reviews and checks found."""

    item: str
    is_request: bool
    asked_by: str
    branch: str
    base: str
    instructions: str
    data: str
    comments: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...]
    feedback: tuple[tuple[str, str], ...]
