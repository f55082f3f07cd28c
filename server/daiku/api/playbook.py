"""The playbook over the wire: its bullets listed, searched and changed, and what waits for a person's word."""

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
    """Without a scope those of both playbooks, the repository's first; without a section all of them; without `all` only
    those that are active."""

    scope: PlaybookScope | None = None
    section: str = ""
    all: bool = False


class PlaybookListResult(Wire):
    """In the order of their adding. `resting` are the ids of those that no run is told: what runs showed of them is
    below the least confidence. `sections` are the names that a bullet can be added to; a person may name others."""

    bullets: tuple[Bullet, ...]
    resting: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


class PlaybookSearchParams(Wire):
    """Without a scope in both playbooks; without `topK` as many as the settings say."""

    query: str
    scope: PlaybookScope | None = None
    section: str = ""
    top_k: int | None = Field(default=None, ge=1, le=1000)


class PlaybookSearchResult(Wire):
    """Best first."""

    hits: tuple[BulletHit, ...]


class PlaybookAddParams(Wire):
    """With `propose` it waits for review, as what was learnt does."""

    section: str
    content: str
    keywords: tuple[str, ...] = ()
    scope: PlaybookScope = "repository"
    propose: bool = False


class PlaybookUpdateParams(Wire):
    """What is left out stays as it is; `keywords: []` takes them away. `active`: false disables the bullet, true enables
    it again."""

    id: Id
    content: str | None = None
    keywords: tuple[str, ...] | None = None
    active: bool | None = None


class PlaybookRef(Wire):
    """A bullet, by its id: the two playbooks have no ids in common."""

    id: Id


class PlaybookChange(Wire):
    """What was changed, or proposed, and the bullet as it stands now; none where an addition is only proposed.
    `redacted`: secrets were taken out of the text."""

    deltas: tuple[Delta, ...]
    bullet: Bullet | None = None
    redacted: bool = False


class PlaybookPlace(LearntFrom):
    """A place in a session that something was learnt from; `title` is that of the session, empty where it is gone."""

    title: str = ""


class ShownDelta(Delta):
    """A change with what a person needs to judge it: the bullets that it touches as they stand now, the difference
    that it makes or made to their texts (under `@@ id @@` lines that begin with `-`, `+` or a space; keywords stand last,
    labelled in the client's language), and the places of its evidence."""

    bullets: tuple[Bullet, ...] = ()
    diff: str = ""
    places: tuple[PlaybookPlace, ...] = ()


class PlaybookDeltasParams(Wire):
    """Without a scope those of both playbooks. `newest`: only so many, those that were decided on last."""

    scope: PlaybookScope | None = None
    statuses: tuple[DeltaStatus, ...] = ("proposed",)
    newest: int | None = Field(default=None, ge=1)


class PlaybookDeltasResult(Wire):
    """Oldest first; the newest of them in the order of their last decision."""

    deltas: tuple[ShownDelta, ...]


class AcceptedDelta(Wire):
    """`content`: the text as the person edited it; none where it is taken as it is."""

    id: Id
    content: str | None = None


class PlaybookReviewParams(Wire):
    """Decided in this order, each by itself. `accept` takes up what was rejected, too. `undo` takes back changes that were
    applied; what was rejected waits again."""

    accept: tuple[AcceptedDelta, ...] = ()
    reject: tuple[Id, ...] = ()
    undo: tuple[Id, ...] = ()


class RefusedDelta(Localizable):
    """A change that could not be decided so, and why."""

    id: str
    message: Text


class PlaybookReviewResult(Localizable):
    """The changes as they stand now, and those that could not be decided so."""

    decided: tuple[Delta, ...] = ()
    refused: tuple[RefusedDelta, ...] = ()
    redacted: bool = False


class PlaybookWatchParams(Wire):
    """`revision`: the one that the client has; empty where it has none."""

    revision: str = ""


class PlaybookWatchResult(Wire):
    """Answered as soon as a playbook is not that of `revision` any more; the `bullet` events of what a run here taught are
    then in its session, after the run's end. `active` counts the bullets that are active in
    both playbooks, `waiting` the changes that wait for a person. `repository`: there is a playbook of this folder."""

    revision: str
    active: int
    waiting: int
    repository: bool = True


class BulletObservation(Wire):
    """What one run showed of a bullet, and the place in its session that decided it. `version` is that of the text that
    the run was told (0: not known); what was about a text that said something else is not `counted`."""

    verdict: Verdict
    why: Why | Literal[""] = ""
    place: PlaybookPlace
    version: int = 0
    counted: bool = True


class PlaybookShowResult(Wire):
    """A bullet, every change of it, oldest first, and what runs showed of it."""

    bullet: Bullet
    history: tuple[ShownDelta, ...] = ()
    observations: tuple[BulletObservation, ...] = ()
