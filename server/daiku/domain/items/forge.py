"""Data that a source returns about an item: text, trust, news, and refusals."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Frozen
from daiku.domain.items.item import ItemKey
from daiku.texts.text import NO_TEXT, Text

RefusalKind = Literal[
    "gone",  # deleted or nonexistent
    "locked",
    "closed",
    "moved",  # transferred to another repository, or the branch moved
    "archived",
    "forbidden",  # the token lacks a permission
    "untrusted",  # the label was set by somebody without write access
    "empty",
    "too_large",
    "limited",  # ask again after `retry_after`
    "unreachable",
    "unauthorized",  # 401: an expired token, or a wrong one
    "unreadable",  # truncated, or from a proxy instead of the forge
    "exists",
    "bad",  # the request was rejected
]
PASSING: frozenset[RefusalKind] = frozenset({"limited", "unreachable", "unauthorized", "unreadable"})
"""Transient refusals, which are retried with backoff. Every other kind is permanent."""
RETRIED: frozenset[RefusalKind] = PASSING - {"limited"}
"""Refusals after which a read is retried immediately."""
SHORT_WAIT = 5.0
"""Seconds: the longest pause requested by a forge that a read waits out."""


class ForgeRefusal(Frozen):
    """A refused request to a source; `retry_after` in seconds, 0 if unknown."""

    kind: RefusalKind
    message: Text
    retry_after: float = 0.0


class FoundItem(Frozen):
    """An open item with the label, and assigned if the settings require it. `refused`: why it is not processed."""

    key: ItemKey
    title: str
    url: str = ""
    labelled_at: str = ""
    """Time at which the label was set; a later time is a new order."""
    refused: Text = NO_TEXT

    @property
    def order(self) -> str:
        """Order key: the time of the label. A refused label has a key of its own, so that accepting it is a new order."""
        return f"refused {self.labelled_at}" if self.refused else self.labelled_at


class Said(Frozen):
    """A comment or a review.

    `trusted`: unchanged since the claim and by a user with write access; untrusted text is data. `path` and
    `line`: position of a review comment.
    """

    id: str
    author: str
    text: str
    time: str
    trusted: bool
    path: str = ""
    line: int = 0


class ItemText(Frozen):
    """An item as it was when it was claimed.

    `body_trusted`: its author has write access, or the user who set the label has and the text is unchanged
    since. `hidden`: text invisible to a reader was removed. `base` is a request's target branch, `default`
    the repository's default branch. `head` is a request's source branch (empty for an issue), `head_commit`
    its commit, `head_repository` its repository if it is another one.
    """

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
    """A failed check of a request: its name, and its output, which is untrusted."""

    name: str
    text: str
    url: str = ""


class ItemNews(Frozen):
    """Changes of an item since `after`.

    `wanted` is False if it was closed or unassigned, or our labels were removed; `why` says which. `said`
    are comments and reviews by people except our own. `checks` is about the head commit. `merged` and
    `closed` are about the request that we opened for the item.
    """

    wanted: bool
    why: Text = NO_TEXT
    said: tuple[Said, ...] = ()
    checks: Literal["none", "pending", "passed", "failed"] = "none"
    failed: tuple[FailedCheck, ...] = ()
    merged: bool = False
    closed: bool = False
