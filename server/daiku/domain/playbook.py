"""The playbook: its bullets, changes of them, what runs showed of each, and the trajectories of its Generator."""

from datetime import UTC, datetime
from typing import Literal, TypeAlias

from pydantic import ConfigDict, Field

from daiku.domain.base import Frozen, Wire

PlaybookScope: TypeAlias = Literal["repository", "user"]
"""Whose playbook: that of one repository, or that of the person, which holds everywhere."""
Origin: TypeAlias = Literal["person", "rule", "model", "import"]
"""Who wrote a text first: a person, a rule over what a run did, a model, or a file that was read in."""
Verdict: TypeAlias = Literal["helpful", "harmful", "neutral"]
DeltaType: TypeAlias = Literal["add", "update", "tag", "merge", "remove", "restore"]
"""`remove` makes a bullet inactive, `restore` active again; nothing is deleted."""
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
"""What decided what a run showed of a bullet. Neutral: no reply named it, nothing on record bears on it (or the run did not
come to its end), a part of the edits that it led to was taken back or it cannot be told whose advice these were
(`unclear`), or the command that it names failed and nothing shows that this was the wrong one. `missing`: there is no such
command; `replaced`: another one passed in its place; `refused`: a person did not allow it; `rejected` and `restored`: a
person took the edits back; `praised`, `objected`: a person said so."""
Doubt: TypeAlias = Literal["tainted", "rejected"]
"""What a person who reviews a change should know: a run that taught it read text from outside, or the person rejected
the same before."""


class Bullet(Wire):
    """One lesson, as people and programs see it. `id` is `<slug>-00001`; `helpful` and `harmful` are sums of what runs
    showed and of what came with an import, as long as its text says the same."""

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
    """The share of what runs showed that speaks for a bullet; 0.5 where nothing is known."""
    known = bullet.helpful + bullet.harmful
    return bullet.helpful / known if known else 0.5


class Playbook(Frozen):
    """A playbook as a value: its bullets in the order of their adding."""

    bullets: tuple[Bullet, ...] = ()
    created_at: str = ""
    updated_at: str = ""


class LearntFrom(Wire):
    """The place in a session that a change was learnt from: a chunk of a run."""

    session_id: str
    run_id: str
    seq: int = 0


class Delta(Wire):
    """A change of a playbook: proposed, or applied with how everything it touched stood `before` and `after`.

    `bullet_id` is what is changed (the new id of an `add` once it is applied), `bullet_ids` what a `merge` takes in; an
    `update` without keywords leaves them, with `no_keywords` it takes them away; `doubts` are for the person who reviews it;
    `again` is where it was learnt once more after a person had rejected it."""

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
    """What one run showed of one bullet. There is one of a run and bullet: later evidence takes its place. `run` is the
    run that did the work, also where a copy of its session is looked at; `version` that of the text that it was told
    (0: not known)."""

    run: str
    bullet: str
    verdict: Verdict
    why: Why | Literal[""] = ""
    session: str = ""
    seq: int = 0
    """The place of what decided it."""
    version: int = 0


class SearchQuery(Frozen):
    """B3.2, R3.46: what is looked for, and in which of the bullets."""

    query_text: str
    top_k: int = Field(default=10, ge=1)
    section_filter: str | None = None
    min_confidence: float = Field(default=0.3, ge=0, le=1)


class BulletHit(Wire):
    """B3.2: a bullet that was found, and how well by vectors, by words and together (0 to 1). `resting`: it is known
    and would fit, but what runs showed of it is below the least confidence, so no run is told it."""

    bullet: Bullet
    vector_score: float
    bm25_score: float
    combined_score: float
    resting: bool = False


class Trajectory(Frozen):
    """R3.14–R3.22: what the Generator made of a query. As JSON it has exactly these eight fields."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    query: str
    dataset: str
    generated_answer: str
    reasoning_steps: list[str]
    used_bullet_ids: list[str]
    status: Literal["success", "failure"]
    error_message: str | None = None
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
