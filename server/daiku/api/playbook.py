"""Wire types of the playbook: list, search, change, and review."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from daiku.api.base import Id
from daiku.domain.base import Localizable, Wire
from daiku.domain.playbook import (
    Bullet,
    BulletHit,
    Delta,
    DeltaStatus,
    LearntFrom,
    PlaybookScope,
    Verdict,
    Why,
)
from daiku.texts.text import Text


class PlaybookListParams(Wire):
    """Filter of a list.

    Without scope: both playbooks, the repository's first. Without section: all. Without `all`: active bullets only.
    """

    scope: PlaybookScope | None = None
    section: str = ""
    all: bool = False


class PlaybookListResult(Wire):
    """Bullets in the order of creation.

    `resting` are the ids of bullets that no run receives because their confidence is below the threshold.
    `sections` are suggestions for new bullets; others are allowed.
    """

    bullets: tuple[Bullet, ...]
    resting: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


class PlaybookSearchParams(Wire):
    """A search. Without scope: both playbooks. Without `topK`: the number in the settings."""

    query: str
    scope: PlaybookScope | None = None
    section: str = ""
    top_k: int | None = Field(default=None, ge=1, le=1000)


class PlaybookSearchResult(Wire):
    """Hits, best first."""

    hits: tuple[BulletHit, ...]


class PlaybookAddParams(Wire):
    """A new bullet. With `propose` it is pending until a review."""

    section: str
    content: str
    keywords: tuple[str, ...] = ()
    scope: PlaybookScope = "repository"
    propose: bool = False


class PlaybookUpdateParams(Wire):
    """Changes of a bullet; absent fields stay.

    `keywords: []` removes the keywords. `active`: false disables the bullet, true enables it again.
    """

    id: Id
    content: str | None = None
    keywords: tuple[str, ...] | None = None
    active: bool | None = None


class PlaybookRef(Wire):
    """Id of a bullet, unique across both playbooks."""

    id: Id


class PlaybookChange(Wire):
    """Applied or proposed changes, and the resulting bullet; none for a proposed addition.

    `redacted`: secrets were removed from the text.
    """

    deltas: tuple[Delta, ...]
    bullet: Bullet | None = None
    redacted: bool = False


class PlaybookPlace(LearntFrom):
    """Source of a lesson in a session; `title` is the session's, empty if it was deleted."""

    title: str = ""


class ShownDelta(Delta):
    """A change with its data for review.

    `bullets` are the affected bullets as they are now, `places` the sources. `diff` has `@@ id @@` lines and
    lines that begin with `-`, `+`, or a space; keywords come last, labelled in the client's language.
    """

    bullets: tuple[Bullet, ...] = ()
    diff: str = ""
    places: tuple[PlaybookPlace, ...] = ()


class PlaybookDeltasParams(Wire):
    """Filter of changes. Without scope: both playbooks. `newest`: at most this many, the last decided."""

    scope: PlaybookScope | None = None
    statuses: tuple[DeltaStatus, ...] = ("proposed",)
    newest: int | None = Field(default=None, ge=1)


class PlaybookDeltasResult(Wire):
    """Changes, oldest first; with `newest` in the order of their last decision."""

    deltas: tuple[ShownDelta, ...]


class AcceptedDelta(Wire):
    """A change to accept; `content` is the text as edited by the user, absent if unedited."""

    id: Id
    content: str | None = None


class PlaybookReviewParams(Wire):
    """Decisions, applied one by one in this order.

    `accept` may name rejected changes. `undo` reverts applied changes and makes rejected ones pending again.
    """

    accept: tuple[AcceptedDelta, ...] = ()
    reject: tuple[Id, ...] = ()
    undo: tuple[Id, ...] = ()


class RefusedDelta(Localizable):
    """A change that could not be decided this way, and why."""

    id: str
    message: Text


class PlaybookReviewResult(Localizable):
    """The changes after the review, and those that could not be decided this way."""

    decided: tuple[Delta, ...] = ()
    refused: tuple[RefusedDelta, ...] = ()
    redacted: bool = False


class PlaybookWatchParams(Wire):
    """`revision`: the client's last revision, or empty."""

    revision: str = ""


class PlaybookWatchResult(Wire):
    """Answer of the long poll, sent as soon as a playbook differs from `revision`.

    The `bullet` events of a run are then in its session, after the end of the run. `active` counts the
    active bullets of both playbooks, `waiting` the pending changes. `repository`: the folder has a playbook.
    """

    revision: str
    active: int
    waiting: int
    repository: bool = True


class BulletObservation(Wire):
    """Evidence of one run on a bullet, and its place in the session.

    `version` is the version of the text that the run received (0: unknown). `counted` is False if it was
    about a text with another meaning.
    """

    verdict: Verdict
    why: Why | Literal[""] = ""
    place: PlaybookPlace
    version: int = 0
    counted: bool = True


class PlaybookShowResult(Wire):
    """A bullet, its changes (oldest first), and its observations."""

    bullet: Bullet
    history: tuple[ShownDelta, ...] = ()
    observations: tuple[BulletObservation, ...] = ()
