"""How far the work on a document is, and what came of it so far: read from the state of its run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

from daiku.dataclass import dataclass
from daiku.domain.work.documents import (
    Document,
    DocumentFormat,
    Evaluated,
    PatchMade,
    ReferencesFound,
    SectionsChosen,
    SimilarityFound,
)
from daiku.domain.work.patches import Change, PatchJSON, Unplaced
from daiku.edits.rules.changes.changemap import merge_patches, rebase
from daiku.run.rules.state.state import State
from daiku.team.rules.drafting.headings import front_matter_end, headings, lines_of
from daiku.team.rules.record import AnsweredCall, answered_calls

T = TypeVar("T")

MOST = 12_000
"""Characters of a part: about what a model writes again whole without leaving things out."""


class Part(NamedTuple):
    """A stretch of a document (code points, half-open), and the heading that it begins with or stands below."""

    start: int
    end: int
    title: str = ""


def parts_of(document: Document) -> tuple[Part, ...]:
    """Divide `document` into parts of at most `MOST` code points, which are all that may change; one if it fits."""
    text = document.text
    first, last = document.selection or (0, len(text))
    heads = headings(text, document.form)

    def title(start: int, end: int) -> str:
        own = next((h.title for h in heads if start <= h.start < end), None)
        return own if own is not None else next((h.title for h in reversed(heads) if h.start < start), "")

    cuts = [*_cuts(document, first, last), last]
    return tuple(
        Part(a, b, title(a, b))
        for a, b in zip([first, *cuts], cuts, strict=False)
        if a < b or a == first == last
    )


def _cuts(document: Document, first: int, last: int) -> Iterator[int]:
    """Yield where the parts end, except the last one."""
    text, front = document.text, front_matter_end(document.text)
    sections = [h.start for h in headings(text, document.form) if max(first, front) < h.start < last]
    paragraphs = [at for at in _paragraph_starts(text, document.form) if first < at < last]
    at = first
    while last - at > MOST:
        limit = at + MOST
        cut = _best(sections, at, limit) or _best(paragraphs, at, limit) or _line(text, at, limit)
        yield cut
        at = cut


def _best(places: list[int], at: int, limit: int) -> int:
    """Return the last of `places` after `at` and not after `limit`; 0 if there is none."""
    return max((place for place in places if at < place <= limit), default=0)


def _paragraph_starts(text: str, form: DocumentFormat) -> Iterator[int]:
    """Yield the starts of the paragraphs after a blank line that are no code."""
    blank = False
    for line in lines_of(text, form):
        if blank and not line.closed and line.text.strip():
            yield line.start
        blank = not line.closed and not line.text.strip()


def _line(text: str, at: int, limit: int) -> int:
    """Return the end of the last line before `limit`, else of the last sentence or word, else `limit`."""
    for mark in ("\n", "。", ". ", " "):
        found = text.rfind(mark, at + 1, limit)
        if found > at:
            return found + len(mark)
    return limit - 1 if text[limit - 1] == "\r" else limit


@dataclass(frozen=True, slots=True)
class PartWork:
    """What came of one part: the calls that drafted and styled it, and what they handed over."""

    part: Part
    draft: AnsweredCall | None = None
    style: AnsweredCall | None = None

    @property
    def drafted(self) -> PatchMade | None:
        return _handover(self.draft, PatchMade)

    @property
    def styled(self) -> PatchMade | None:
        return _handover(self.style, PatchMade)


@dataclass(frozen=True, slots=True)
class Progress:
    """The work so far: the parts that are concerned (None: not chosen yet), and each later stage's call."""

    document: Document
    parts: tuple[Part, ...]
    works: tuple[PartWork, ...] | None
    sections: AnsweredCall | None = None
    reference: AnsweredCall | None = None
    guard: AnsweredCall | None = None
    evaluation: AnsweredCall | None = None
    applied: AnsweredCall | None = None

    @property
    def current(self) -> PartWork | None:
        """The part that is worked on: not drafted yet, or drafted and not styled."""
        works = self.works or ()
        return next(
            (w for w in works if w.draft is None or (w.drafted is not None and w.style is None)), None
        )


def progress_of(state: State, document: Document) -> Progress:
    """How far the run is that works on `document`."""
    log = answered_calls(state)
    parts = parts_of(document)
    sections = _of(log, "sections")
    chosen = _chosen(parts, document, sections)
    works: list[PartWork] = []
    drafts = [t for t in log if t.agent == "draft"]
    styles = [t for t in log if t.agent == "style"]
    for number, part in enumerate(chosen or ()):
        draft = drafts[number] if number < len(drafts) else None
        style = styles.pop(0) if styles and _handover(draft, PatchMade) is not None else None
        works.append(PartWork(part, draft, style))
    return Progress(
        document,
        parts,
        None if chosen is None else tuple(works),
        sections,
        _of(log, "reference"),
        _of(log, "guard"),
        next((t for t in log if t.call.tool == EVALUATE), None),
        next((t for t in log if t.call.tool == APPLY), None),
    )


EVALUATE, APPLY = "document/evaluate", "document/apply"


def _of(log: tuple[AnsweredCall, ...], agent: str) -> AnsweredCall | None:
    return next((t for t in log if t.agent == agent), None)


def _chosen(
    parts: tuple[Part, ...], document: Document, sections: AnsweredCall | None
) -> tuple[Part, ...] | None:
    """The parts to be worked on. One part, or what the person selected, needs no choice."""
    if len(parts) <= 1 or document.selection is not None:
        return parts
    if sections is None:
        return None
    found = _handover(sections, SectionsChosen)
    if found is None:
        return ()
    return tuple(part for number, part in enumerate(parts, 1) if number in found.numbers)


def _handover(taken: AnsweredCall | None, kind: type[T]) -> T | None:
    """Return what a stage handed over, if it is of this kind."""
    found = taken.back.handover if taken is not None and taken.back is not None else None
    return found if isinstance(found, kind) else None


# ---- what the stages came to


@dataclass(frozen=True, slots=True)
class MergedWork:
    """The patch of the document, and style changes that were dropped for the draft's, or could not be placed."""

    patch: PatchJSON
    dropped: tuple[str, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()


def merged_work(progress: Progress) -> MergedWork:
    """Draft and style of every part as one patch of the document (R1.59)."""
    old = progress.document.text
    changes: list[Change] = []
    dropped: list[str] = []
    unplaced: list[Unplaced] = []
    for work in progress.works or ():
        if work.drafted is None:
            continue
        part, draft = old[work.part.start : work.part.end], work.drafted.patch
        found = draft.change_map
        if work.styled is not None:
            rebased = rebase(part, draft, work.styled.patch.change_map)
            merged = merge_patches(rebased.draft, rebased.style)
            found = merged.change_map
            dropped += [change.text or "" for change in (*rebased.straddling, *merged.dropped)]
            unplaced += work.styled.unplaced
        at = work.part.start
        changes += (c.model_copy(update={"start": c.start + at, "end": c.end + at}) for c in found)
    return MergedWork(_whole(old, changes), tuple(dropped), tuple(unplaced))


def _whole(old: str, changes: list[Change]) -> PatchJSON:
    pieces: list[str] = []
    at = 0
    for change in changes:
        pieces += (old[at : change.start], change.text or "")
        at = change.end
    return PatchJSON(new_text="".join((*pieces, old[at:])), change_map=tuple(changes))


def passages_of(document: Document, patch: PatchJSON) -> tuple[str, ...]:
    """The paragraphs of the new text that the patch changes, in order."""
    bounds = [0, *_paragraph_starts(patch.new_text, document.form), len(patch.new_text)]
    found: dict[int, str] = {}
    shift = 0
    for change in patch.change_map:
        first = change.start + shift
        last = first + len(change.text or "")
        shift = last - change.end
        for number, (start, end) in enumerate(pairwise(bounds)):
            if start <= max(last - 1, first) and first < end and change.text:
                found[number] = patch.new_text[start:end].strip()
    return tuple(found[number] for number in sorted(found) if found[number])


def references_of(progress: Progress) -> ReferencesFound | None:
    """What the reference stage handed over; None where it did not run or failed."""
    return _handover(progress.reference, ReferencesFound)


def similarity_of(progress: Progress) -> SimilarityFound | None:
    """What the guard stage handed over; None where it did not run or failed."""
    return _handover(progress.guard, SimilarityFound)


def evaluation_of(progress: Progress) -> Evaluated | None:
    """The scores of the new text; None where they were not made."""
    taken = progress.evaluation
    if taken is None or not taken.ok:
        return None
    if (found := _handover(taken, Evaluated)) is not None:
        return found
    try:
        return Evaluated.model_validate_json(taken.text)
    except ValueError:  # an answer of another version: it is not shown
        return None
