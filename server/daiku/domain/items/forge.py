"""What a source says of an item: its text as it stood, who is believed, what is new, and why it refused."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Frozen
from daiku.domain.items.item import ItemKey
from daiku.texts.text import NO_TEXT, Text

RefusalKind = Literal[
    "gone",  # deleted, or never there
    "locked",
    "closed",
    "moved",  # transferred to another repository, or the branch is not where it was
    "archived",
    "forbidden",  # the token may not do this
    "untrusted",  # the label was set by somebody without write access
    "empty",
    "too_large",
    "limited",  # ask again after `retry_after`
    "unreachable",
    "unauthorized",  # the login was not accepted (401): a token that is being renewed, or a wrong one
    "unreadable",  # the answer is not one of the forge's: cut off, or made by a proxy
    "exists",
    "bad",  # what was sent was refused
]
PASSING: frozenset[RefusalKind] = frozenset({"limited", "unreachable", "unauthorized", "unreadable"})
"""Transient refusals, which are retried with backoff. Every other kind is permanent."""
RETRIED: frozenset[RefusalKind] = PASSING - {"limited"}
"""Refusals after which a read is repeated at once."""
SHORT_WAIT = 5.0
"""Seconds: a pause that is no longer, and that a forge asks for, is waited out within a read."""


class ForgeRefusal(Frozen):
    """Why a source did not do what was asked; `retry_after` in seconds, 0 where it said nothing."""

    kind: RefusalKind
    message: Text
    retry_after: float = 0.0


class FoundItem(Frozen):
    """An open item with the label, assigned where that is asked for. `refused`: why it is not worked."""

    key: ItemKey
    title: str
    url: str = ""
    labelled_at: str = ""
    """When the label was set: a later one is another order."""
    refused: Text = NO_TEXT

    @property
    def order(self) -> str:
        """Order key: the time of the label. A refused label has a key of its own, so that accepting it is a new order."""
        return f"refused {self.labelled_at}" if self.refused else self.labelled_at


class Said(Frozen):
    """A comment or a review. `trusted`: by a person with write access, and as it stood at the claim; what is not is
    data. `path` and `line`: where a review's comment stands."""

    id: str
    author: str
    text: str
    time: str
    trusted: bool
    path: str = ""
    line: int = 0


class ItemText(Frozen):
    """An item as it stood when it was claimed. `body_trusted`: who wrote it has write access, or who set the label
    has and it was not changed since. `hidden`: text was left out that a person would not have seen. `base` is the
    branch that a request goes to, `default` the repository's own; `head` is a request's branch, empty for an issue,
    and `head_commit` where it stands. `head_repository`: where that branch lies, if elsewhere."""

    key: ItemKey
    title: str
    body: str
    author: str
    url: str = ""
    body_trusted: bool
    comments: tuple[Said, ...] = ()
    hidden: bool = False
    clone_url: str = ""
    default: str = ""
    base: str = ""
    head: str = ""
    head_commit: str = ""
    head_repository: str = ""
    claimed_at: str = ""


class FailedCheck(Frozen):
    """A check of a request that is red: its name, and what it says, which is data."""

    name: str
    text: str
    url: str = ""


class ItemNews(Frozen):
    """What changed since `after`. `wanted` False: it was closed, its assignment or every label of ours was taken away;
    `why` says which. `said` are comments and reviews by people, ours left out; `checks` is about the head commit. `merged`,
    `closed`: that is what became of the request that we made for the item."""

    wanted: bool
    why: Text = NO_TEXT
    said: tuple[Said, ...] = ()
    checks: Literal["none", "pending", "passed", "failed"] = "none"
    failed: tuple[FailedCheck, ...] = ()
    merged: bool = False
    closed: bool = False
