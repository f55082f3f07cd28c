"""Template variables of the request for a work item of a forge; texts are fenced already."""

from __future__ import annotations

from daiku.domain.base import Frozen


class ItemVariables(Frozen):
    """Variables of the template `work/item`.

    `instructions` and `comments` come from authorized people, `data` and `others` from anybody; `feedback` comes from
    reviews and checks.
    """

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
