"""The playbook: bullets, changes (deltas), observations from runs, and trajectories of its Generator."""

from datetime import UTC, datetime
from typing import Literal, TypeAlias

from pydantic import ConfigDict, Field

from daiku.domain.base import Frozen, Wire

PlaybookScope: TypeAlias = Literal["repository", "user"]
"""Owner of a playbook: one repository, or the user (applies everywhere)."""
Origin: TypeAlias = Literal["person", "rule", "model", "import"]
"""First author of a text: the user, a rule applied to a run, a model, or an imported file."""
Verdict: TypeAlias = Literal["helpful", "harmful", "neutral"]
DeltaType: TypeAlias = Literal["add", "update", "tag", "merge", "remove", "restore"]
"""`remove` deactivates a bullet, `restore` activates it again; nothing is deleted."""
DeltaStatus: TypeAlias = Literal["proposed", "applied", "rejected", "undone"]
Why: TypeAlias = Literal[
    "not_cited",
    "nothing_shown",
    "run_cancelled",
    "run_failed",
    "run_limited",
    "run_looped",
    "unclear",
    "command_passed",
    "command_failed",
    "command_missing",
    "command_replaced",
    "command_refused",
    "acceptance_met",
    "checks_passed",
    "edits_kept",
    "edits_accepted",
    "edits_refused",
    "edits_rejected",
    "edits_restored",
    "praised",
    "objected",
    "model_judged",
]
"""Reason for an observation's verdict on a bullet.

Neutral: the bullet was not cited (`not_cited`), no evidence concerns it (`nothing_shown`), the run did not
complete, or the evidence is ambiguous (`unclear`). `command_missing`: the command does not exist.
`command_replaced`: another command passed instead. `command_refused`: the user denied it. `edits_rejected`,
`edits_restored`: the user took the edits back. `praised`, `objected`: the user said so.
"""
Doubt: TypeAlias = Literal["tainted", "rejected"]
"""Reason for a review: a source run read untrusted text, or the user rejected the same lesson before."""


class Bullet(Wire):
    """One lesson. `id` is `<slug>-00001`.

    `helpful` and `harmful` are counts from runs and imports, kept as long as the meaning of the text is
    unchanged.
    """

    id: str
    section: str
    content: str
    keywords: tuple[str, ...] = ()
    helpful: int = Field(default=0, ge=0)
    harmful: int = Field(default=0, ge=0)
    active: bool = True
    origin: Origin = "person"
    created_at: str = ""
    updated_at: str = ""


def confidence(bullet: Bullet) -> float:
    """Return the share of helpful observations of a bullet; 0.5 without observations."""
    observations = bullet.helpful + bullet.harmful
    return bullet.helpful / observations if observations else 0.5


class Playbook(Frozen):
    """A playbook as a value: its bullets in the order of creation."""

    bullets: tuple[Bullet, ...] = ()
    created_at: str = ""
    updated_at: str = ""


class LearntFrom(Wire):
    """Source of a change: a chunk of a run in a session."""

    session_id: str
    run_id: str
    seq: int = 0


class Delta(Wire):
    """A change of a playbook: proposed, or applied with the affected bullets `before` and `after`.

    `bullet_id` is the changed bullet (for an `add`, its id once applied), `bullet_ids` are those that a
    `merge` absorbs. An `update` without keywords keeps them; `no_keywords` removes them. `doubts` are for
    the reviewer. `again` lists where the lesson was learned again after a rejection.
    """

    id: str
    type: DeltaType
    scope: PlaybookScope = "repository"
    section: str = ""
    content: str = ""
    keywords: tuple[str, ...] = ()
    no_keywords: bool = False
    bullet_id: str = ""
    bullet_ids: tuple[str, ...] = ()
    tag: Verdict | None = None
    status: DeltaStatus = "proposed"
    origin: Origin = "person"
    why: str = ""
    evidence: tuple[LearntFrom, ...] = ()
    again: tuple[LearntFrom, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    before: tuple[Bullet, ...] = ()
    after: tuple[Bullet, ...] = ()
    created_at: str = ""
    decided_at: str = ""


class Observation(Frozen):
    """Evidence of one run on one bullet.

    There is one per run and bullet; later evidence replaces it. `run` is the original run, also for forked
    sessions. `version` is the version of the text that the run received (0: unknown).
    """

    run: str
    bullet: str
    verdict: Verdict
    why: Why | Literal[""] = ""
    session: str = ""
    seq: int = 0
    """Chunk that decided the verdict."""
    version: int = 0


class SearchQuery(Frozen):
    """A playbook search (B3.2, R3.46), optionally limited to one section."""

    query_text: str
    top_k: int = Field(default=10, ge=1)
    section_filter: str | None = None
    min_confidence: float = Field(default=0.3, ge=0, le=1)


class BulletHit(Wire):
    """A search hit with its vector, BM25, and combined score (0 to 1; B3.2).

    `resting`: the bullet matches, but its confidence is below the threshold, so no run receives it.
    """

    bullet: Bullet
    vector_score: float
    bm25_score: float
    combined_score: float
    resting: bool = False


class Trajectory(Frozen):
    """The Generator's answer to a query (R3.14–R3.22). Its JSON has exactly these eight fields."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    query: str
    dataset: str
    generated_answer: str
    reasoning_steps: list[str]
    used_bullet_ids: list[str]
    status: Literal["success", "failure"]
    error_message: str | None = None
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
