"""What the drafting agents are given and hand over: a document or a part of it, patches, references, scores."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.domain.base import Wire
from daiku.domain.guardrails import GuardrailAction
from daiku.domain.work.patches import PatchJSON, Unplaced

DocumentFormat: TypeAlias = Literal["markdown", "rst", "asciidoc", "html", "latex", "plain"]
Depth: TypeAlias = Annotated[int, Field(ge=0, le=3)]
"""How deep a draft goes: 0 shortens, 1 changes what was asked, 2 explains more, 3 goes into every point (R1.60)."""


class Passage(Wire):
    """A piece of another text: where it stands, how like it is (0 to 1), its words."""

    source: str
    text: str
    score: float


class Criterion(Wire):
    """One thing that a text is judged by, and how much it counts."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")
    text: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class Rubric(Wire):
    """What texts are judged by."""

    name: str = "prose"
    criteria: tuple[Criterion, ...] = Field(min_length=1, max_length=20)


class Score(Wire):
    """How well a text meets a criterion (0 to 4), why, and what would be better."""

    criterion: str
    score: int = Field(ge=0, le=4)
    why: str = ""
    advice: str = ""


class Document(Wire):
    """A document, or a part of it, with what a stage has to know of it. `text` is what is worked on; of the whole
    document as a person has it where the machine is given it, of a part `part` of `parts` where a stage is."""

    path: str
    form: DocumentFormat = "plain"
    text: str
    depth: Depth = 1
    part: int = 0
    parts: int = 0
    selection: tuple[int, int] | None = None
    """Only this of it is to be changed (code points); None: all of it."""
    outline: str = ""
    """The headings of the whole document, where a stage is given a part."""
    passages: tuple[str, ...] = ()
    """What the patch puts into the document, for those who look at nothing else."""
    references: tuple[Passage, ...] = ()
    rubric: Rubric | None = None
    """None: the rubric that comes with Daiku."""
    lessons: str = ""
    """What earlier judgements taught, from a file of the workspace."""


class SectionsChosen(Wire):
    """Which parts of a long document are concerned, by their numbers from 1."""

    kind: Literal["sections"] = "sections"
    numbers: tuple[int, ...] = ()


class PatchMade(Wire):
    """A patch of the text that the stage was given, and the issues that could not be placed in it."""

    kind: Literal["patch"] = "patch"
    patch: PatchJSON
    unplaced: tuple[Unplaced, ...] = ()
    notes: str = ""


class ReferencesFound(Wire):
    """What the workspace's references hold that is near to the new text; `by` names how it was searched."""

    kind: Literal["references"] = "references"
    passages: tuple[Passage, ...] = ()
    by: str = ""


class SimilarityFound(Wire):
    """How like the new text is to the nearest text that it was compared with (R1.63-R1.65)."""

    kind: Literal["similarity"] = "similarity"
    action: GuardrailAction = "pass"
    score: float = 0.0
    nearest: Passage | None = None


class Evaluated(Wire):
    """The scores of a text by a rubric (R1.66). `total` is the weighted mean, 0 to 1. `cached`: no model was asked
    now, for the same text was judged by the same rubric and model before."""

    kind: Literal["evaluation"] = "evaluation"
    scores: tuple[Score, ...] = ()
    total: float = 0.0
    cached: bool = False


class KeptEvaluation(Wire):
    """A judgement with the session that it was made in and the document that it is about."""

    session: str
    path: str
    evaluation: Evaluated
