"""Data of the drafting agents: documents, sections, patches, references, scores."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.domain.base import Wire
from daiku.domain.guardrails import GuardrailAction
from daiku.domain.work.patches import PatchJSON, Unplaced

DocumentFormat: TypeAlias = Literal["markdown", "rst", "asciidoc", "html", "latex", "plain"]
Depth: TypeAlias = Annotated[int, Field(ge=0, le=3)]
"""Depth of a draft: 0 shortens, 1 changes what was requested, 2 explains more, 3 covers every point in depth
(R1.60)."""


class Passage(Wire):
    """A passage of another text: its source, its text, and its similarity (0 to 1)."""

    source: str
    text: str
    score: float


class Criterion(Wire):
    """A criterion of a rubric, with its weight."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")
    text: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class Rubric(Wire):
    """Criteria for judging texts."""

    name: str = "prose"
    criteria: tuple[Criterion, ...] = Field(min_length=1, max_length=20)


class Score(Wire):
    """A score for one criterion (0 to 4), its reason, and advice."""

    criterion: str
    score: int = Field(ge=0, le=4)
    why: str = ""
    advice: str = ""


class Document(Wire):
    """A document, or one part of it, as a stage receives it.

    `text` is the text to work on: the complete document, or part `part` of `parts`.
    """

    path: str
    form: DocumentFormat = "plain"
    text: str
    depth: Depth = 1
    part: int = 0
    parts: int = 0
    selection: tuple[int, int] | None = None
    """Range that may change (code points, half-open); None: all of it."""
    outline: str = ""
    """Headings of the complete document, for a stage that receives a part."""
    passages: tuple[str, ...] = ()
    """Texts that the patch inserts, for stages that read nothing else."""
    references: tuple[Passage, ...] = ()
    rubric: Rubric | None = None
    """None: the default rubric."""
    lessons: str = ""
    """Lessons of earlier evaluations, from a file of the workspace."""


class SectionsChosen(Wire):
    """Handover: relevant parts of a long document, by number from 1."""

    kind: Literal["sections"] = "sections"
    numbers: tuple[int, ...] = ()


class PatchMade(Wire):
    """Handover: a patch of the stage's text, and the issues that could not be placed."""

    kind: Literal["patch"] = "patch"
    patch: PatchJSON
    unplaced: tuple[Unplaced, ...] = ()
    notes: str = ""


class ReferencesFound(Wire):
    """Handover: reference passages of the workspace that are similar to the new text; `by` names the search."""

    kind: Literal["references"] = "references"
    passages: tuple[Passage, ...] = ()
    by: str = ""


class SimilarityFound(Wire):
    """Handover: similarity of the new text to the nearest text compared (R1.63-R1.65)."""

    kind: Literal["similarity"] = "similarity"
    action: GuardrailAction = "pass"
    score: float = 0.0
    nearest: Passage | None = None


class Evaluated(Wire):
    """Handover: scores of a text by a rubric (R1.66).

    `total` is the weighted mean, 0 to 1. `cached`: taken from an earlier evaluation of the same text by the
    same rubric and model.
    """

    kind: Literal["evaluation"] = "evaluation"
    scores: tuple[Score, ...] = ()
    total: float = 0.0
    cached: bool = False


class KeptEvaluation(Wire):
    """A stored evaluation with its session and document."""

    session: str
    path: str
    evaluation: Evaluated
