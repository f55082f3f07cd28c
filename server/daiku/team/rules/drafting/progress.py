"""Progress and results of the work on a document, computed from the run's state."""

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
from daiku.team.rules.drafting.headings import find_front_matter_end, find_headings, split_document_lines
from daiku.team.rules.record import AnsweredCall, list_answered_calls

T = TypeVar("T")

MOST = 12_000
"""Maximum characters of a part: about what a model rewrites in full without omissions."""


class DocumentPart(NamedTuple):
    """A range of a document (code points, half-open), and the heading at its start or above it."""

    start: int
    end: int
    title: str = ""


def split_document(document: Document) -> tuple[DocumentPart, ...]:
    """Split `document` into parts of at most `MOST` code points within its selection; one part if it fits."""
    text = document.text
    first, last = document.selection or (0, len(text))
    heads = find_headings(text, document.form)

    def find_title(start: int, end: int) -> str:
        heading = next((h.title for h in heads if start <= h.start < end), None)
        return (
            heading
            if heading is not None
            else next((h.title for h in reversed(heads) if h.start < start), "")
        )

    cuts = [*_find_cuts(document, first, last), last]
    return tuple(
        DocumentPart(a, b, find_title(a, b))
        for a, b in zip([first, *cuts], cuts, strict=False)
        if a < b or a == first == last
    )


def _find_cuts(document: Document, first: int, last: int) -> Iterator[int]:
    """Yield the ends of the parts except the last."""
    text, front = document.text, find_front_matter_end(document.text)
    sections = [h.start for h in find_headings(text, document.form) if max(first, front) < h.start < last]
    paragraphs = [start for start in _find_paragraph_starts(text, document.form) if first < start < last]
    start = first
    while last - start > MOST:
        limit = start + MOST
        cut = (
            _find_last_place(sections, start, limit)
            or _find_last_place(paragraphs, start, limit)
            or _find_cut(text, start, limit)
        )
        yield cut
        start = cut


def _find_last_place(places: list[int], start: int, limit: int) -> int:
    """Return the last of `places` after `start` and up to `limit`; 0 if there is none."""
    return max((place for place in places if start < place <= limit), default=0)


def _find_paragraph_starts(text: str, form: DocumentFormat) -> Iterator[int]:
    """Yield the starts of paragraphs that follow a blank line and are not code."""
    blank = False
    for line in split_document_lines(text, form):
        if blank and not line.closed and line.text.strip():
            yield line.start
        blank = not line.closed and not line.text.strip()


def _find_cut(text: str, start: int, limit: int) -> int:
    """Return the end of the last line before `limit`, else of the last sentence or word, else `limit`."""
    for mark in ("\n", "。", ". ", " "):
        index = text.rfind(mark, start + 1, limit)
        if index > start:
            return index + len(mark)
    return limit - 1 if text[limit - 1] == "\r" else limit


@dataclass(frozen=True, slots=True)
class PartWork:
    """A part with the calls that drafted and styled it."""

    part: DocumentPart
    draft: AnsweredCall | None = None
    style: AnsweredCall | None = None

    @property
    def draft_patch(self) -> PatchMade | None:
        return _find_handover(self.draft, PatchMade)

    @property
    def style_patch(self) -> PatchMade | None:
        return _find_handover(self.style, PatchMade)


@dataclass(frozen=True, slots=True)
class DocumentProgress:
    """Progress of a document: the chosen parts (None: not chosen yet), and the call of each later stage."""

    document: Document
    parts: tuple[DocumentPart, ...]
    works: tuple[PartWork, ...] | None
    sections: AnsweredCall | None = None
    reference: AnsweredCall | None = None
    guard: AnsweredCall | None = None
    evaluation: AnsweredCall | None = None
    applied: AnsweredCall | None = None

    @property
    def current(self) -> PartWork | None:
        """The part to work on: not drafted yet, or drafted and not styled."""
        works = self.works or ()
        return next(
            (w for w in works if w.draft is None or (w.draft_patch is not None and w.style is None)), None
        )


def find_progress(state: State, document: Document) -> DocumentProgress:
    """Return the progress of the run on `document`."""
    log = list_answered_calls(state)
    parts = split_document(document)
    sections = _find_entry(log, "sections")
    chosen_parts = _find_chosen_parts(parts, document, sections)
    works: list[PartWork] = []
    drafts = [t for t in log if t.agent == "draft"]
    styles = [t for t in log if t.agent == "style"]
    for number, part in enumerate(chosen_parts or ()):
        draft = drafts[number] if number < len(drafts) else None
        style = styles.pop(0) if styles and _find_handover(draft, PatchMade) is not None else None
        works.append(PartWork(part, draft, style))
    return DocumentProgress(
        document,
        parts,
        None if chosen_parts is None else tuple(works),
        sections,
        _find_entry(log, "reference"),
        _find_entry(log, "guard"),
        next((t for t in log if t.call.tool == EVALUATE), None),
        next((t for t in log if t.call.tool == APPLY), None),
    )


EVALUATE, APPLY = "document/evaluate", "document/apply"


def _find_entry(log: tuple[AnsweredCall, ...], agent: str) -> AnsweredCall | None:
    return next((t for t in log if t.agent == agent), None)


def _find_chosen_parts(
    parts: tuple[DocumentPart, ...], document: Document, sections: AnsweredCall | None
) -> tuple[DocumentPart, ...] | None:
    """Return the parts to work on; None until they are chosen. One part, or a selection, needs no choice."""
    if len(parts) <= 1 or document.selection is not None:
        return parts
    if sections is None:
        return None
    choice = _find_handover(sections, SectionsChosen)
    if choice is None:
        return ()
    return tuple(part for number, part in enumerate(parts, 1) if number in choice.numbers)


def _find_handover(entry: AnsweredCall | None, kind: type[T]) -> T | None:
    """Return a stage's handover if it is a `kind`."""
    handover = entry.handoff.handover if entry is not None and entry.handoff is not None else None
    return handover if isinstance(handover, kind) else None


# ---- results of the stages


@dataclass(frozen=True, slots=True)
class MergedWork:
    """The document's patch, style changes dropped for the draft's, and issues that could not be placed."""

    patch: PatchJSON
    dropped: tuple[str, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()


def merge_work(progress: DocumentProgress) -> MergedWork:
    """Merge draft and style changes of every part into one patch of the document (R1.59)."""
    old = progress.document.text
    changes: list[Change] = []
    dropped: list[str] = []
    unplaced: list[Unplaced] = []
    for work in progress.works or ():
        if work.draft_patch is None:
            continue
        part, draft = old[work.part.start : work.part.end], work.draft_patch.patch
        change_map = draft.change_map
        if work.style_patch is not None:
            rebased = rebase(part, draft, work.style_patch.patch.change_map)
            merged = merge_patches(rebased.draft, rebased.style)
            change_map = merged.change_map
            dropped += [change.text or "" for change in (*rebased.straddling, *merged.dropped)]
            unplaced += work.style_patch.unplaced
        offset = work.part.start
        changes += (
            c.model_copy(update={"start": c.start + offset, "end": c.end + offset}) for c in change_map
        )
    return MergedWork(_build_patch(old, changes), tuple(dropped), tuple(unplaced))


def _build_patch(old: str, changes: list[Change]) -> PatchJSON:
    pieces: list[str] = []
    position = 0
    for change in changes:
        pieces += (old[position : change.start], change.text or "")
        position = change.end
    return PatchJSON(new_text="".join((*pieces, old[position:])), change_map=tuple(changes))


def find_changed_passages(document: Document, patch: PatchJSON) -> tuple[str, ...]:
    """Return the paragraphs of the new text that the patch changes, in order."""
    bounds = [0, *_find_paragraph_starts(patch.new_text, document.form), len(patch.new_text)]
    passages: dict[int, str] = {}
    shift = 0
    for change in patch.change_map:
        first = change.start + shift
        last = first + len(change.text or "")
        shift = last - change.end
        for number, (start, end) in enumerate(pairwise(bounds)):
            if start <= max(last - 1, first) and first < end and change.text:
                passages[number] = patch.new_text[start:end].strip()
    return tuple(passages[number] for number in sorted(passages) if passages[number])


def find_references(progress: DocumentProgress) -> ReferencesFound | None:
    """Return the reference stage's handover; None if it did not run or failed."""
    return _find_handover(progress.reference, ReferencesFound)


def find_similarity(progress: DocumentProgress) -> SimilarityFound | None:
    """Return the guard stage's handover; None if it did not run or failed."""
    return _find_handover(progress.guard, SimilarityFound)


def find_evaluation(progress: DocumentProgress) -> Evaluated | None:
    """Return the scores of the new text; None if there are none."""
    entry = progress.evaluation
    if entry is None or not entry.ok:
        return None
    if (evaluation := _find_handover(entry, Evaluated)) is not None:
        return evaluation
    try:
        return Evaluated.model_validate_json(entry.text)
    except ValueError:  # written by another version: ignored
        return None
