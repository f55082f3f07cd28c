"""The last words of a run that worked on a document: what changed, what gave way, how the new text was judged."""

from __future__ import annotations

from daiku.core.changes.diff import stat
from daiku.core.drafting.progress import MergedWork, Progress, evaluation_of, references_of, similarity_of
from daiku.domain.work.documents import Evaluated
from daiku.domain.work.patches import FileChange
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text

NAMED = 5
"""Things of a kind that are named; of the others the number."""
WORDS = 60


def closing_words(done: Progress, merged: MergedWork, *, applied: bool) -> Text:
    """What came of the work, in a few lines."""
    parts = [
        _changed(done, merged, applied=applied),
        _left(done),
        _gave_way(merged),
        _similar(done),
        _near(done),
        _scores(evaluation_of(done)),
    ]
    return joined("lines", [part for part in parts if part])


def _changed(done: Progress, merged: MergedWork, *, applied: bool) -> Text:
    change = FileChange(
        path=done.document.path, kind="edit", old=done.document.text, new=merged.patch.new_text
    )
    counted = stat(change)
    numbers = {"path": change.path, "added": counted.added, "removed": counted.removed}
    if not applied:
        return text("document.only_proposed", **numbers)
    taken = done.applied
    if taken is not None and taken.ok:
        return text("document.changed", **numbers)
    return text("document.not_applied", why=as_text(taken.text) if taken is not None else NO_TEXT)


def _left(done: Progress) -> Text:
    """The parts whose draft could not be taken."""
    failed = [w for w in done.works or () if w.draft is not None and w.drafted is None]
    if not failed:
        return NO_TEXT
    names = ", ".join(f"“{w.part.title}”" for w in failed[:NAMED])
    return text("document.parts_left", count=len(failed), names=names)


def _gave_way(merged: MergedWork) -> Text:
    named = [f"“{each.issue.quote[:WORDS] or each.issue.replacement[:WORDS]}”" for each in merged.unplaced]
    named += [f"“{words[:WORDS]}”" for words in merged.dropped]
    if not named:
        return NO_TEXT
    return text("document.style_dropped", count=len(named), names=", ".join(named[:NAMED]))


def _similar(done: Progress) -> Text:
    found = similarity_of(done)
    if found is None or found.action == "pass":
        return NO_TEXT
    source = found.nearest.source if found.nearest is not None else ""
    return text("document.similar", score=f"{found.score:.2f}", source=source)


def _near(done: Progress) -> Text:
    found = references_of(done)
    if found is None or not found.passages:
        return NO_TEXT
    names = ", ".join(dict.fromkeys(f"{p.source} ({p.score:.2f})" for p in found.passages[:NAMED]))
    return text("document.near", names=names)


def _scores(found: Evaluated | None) -> Text:
    if found is None:
        return text("document.not_judged")
    scores = ", ".join(f"{each.criterion} {each.score}/4" for each in found.scores)
    key = "document.scores_cached" if found.cached else "document.scores"
    return text(key, total=f"{found.total:.2f}", scores=scores)
