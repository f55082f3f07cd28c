"""Conversion of changes and restored files to wire types and diffs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from daiku.domain.work.patches import FileChange, FileKind
from daiku.edits.review.decisions import RestoreOutcome
from daiku.edits.review.review_state import format_changed_lines
from daiku.edits.rules.changes.diff import render_unified_diff
from daiku.edits.rules.changes.review import Blob, FileReview, ReviewHunk, list_hunks

if TYPE_CHECKING:
    from daiku import api


def list_changed_files(reviews: Mapping[str, FileReview], session: str) -> tuple[api.ChangedFile, ...]:
    """Convert the files to decide on to wire types, in their order."""
    return tuple(_to_file(path, review, session) for path, review in reviews.items())


def list_changed_everywhere(
    by_session: Mapping[str, Mapping[str, FileReview]],
) -> tuple[api.ChangedFile, ...]:
    """Return the files of all sessions by path. Changes that a fork shares are listed once."""
    listed: set[tuple[str | int, ...]] = set()
    files: list[api.ChangedFile] = []
    for session, reviews in by_session.items():
        for file in list_changed_files(reviews, session):
            hunks = tuple(hunk for hunk in file.hunks if _get_key(file, hunk) not in listed)
            file_key = (file.path, file.kind, file.before or "")
            if hunks or (not file.hunks and file_key not in listed):
                counts = {
                    "added": sum(hunk.new_lines for hunk in hunks),
                    "removed": sum(hunk.old_lines for hunk in hunks),
                }
                files.append(file.model_copy(update={"hunks": hunks} | counts))
            listed |= {file_key, *(_get_key(file, hunk) for hunk in hunks)}
    return tuple(sorted(files, key=lambda file: file.path))


def _get_key(file: api.ChangedFile, hunk: api.ChangeHunk) -> tuple[str | int, ...]:
    return (file.path, hunk.new_start, hunk.new_lines, hunk.text)


def render_diff(path: str, review: FileReview) -> str:
    """Return a file's open changes as a unified diff; empty if it is binary."""
    if isinstance(review.base, Blob) or isinstance(review.now, Blob):
        return ""
    before = review.origin or path
    to = path if review.origin is not None else None
    return render_unified_diff(
        FileChange(path=before, kind=_get_kind(review), old=review.base, new=review.now, to=to)
    )


def to_restore_result(outcome: RestoreOutcome) -> api.RestoreResult:
    """Convert the result of restoring files to its wire type."""
    from daiku import api  # lazy: most commands show no changes, and this is a tenth of startup

    return api.RestoreResult(files=outcome.files, cannot_undo=outcome.cannot_undo, checkpoint_id=outcome.redo)


def _to_file(path: str, review: FileReview, session: str) -> api.ChangedFile:
    from daiku import api  # as above

    hunks = list_hunks(review)
    return api.ChangedFile(
        session_id=session,
        path=path,
        kind=_get_kind(review),
        added=sum(len(hunk.new) for hunk in hunks),
        removed=sum(len(hunk.old) for hunk in hunks),
        hunks=tuple(_to_hunk(hunk) for hunk in hunks),
        before=review.origin,
        binary=isinstance(review.base, Blob) or isinstance(review.now, Blob),
    )


def _get_kind(review: FileReview) -> FileKind:
    if review.base is None:
        return "create"
    if review.now is None:
        return "delete"
    return "edit" if review.origin is None else "rename"


def _to_hunk(hunk: ReviewHunk) -> api.ChangeHunk:
    from daiku import api  # as above

    span = hunk.span
    return api.ChangeHunk(
        hunk_id=hunk.id,
        old_start=span.old + (span.old < span.old_end),
        old_lines=span.old_end - span.old,
        new_start=span.new + (span.new < span.new_end),
        new_lines=span.new_end - span.new,
        text="".join(format_changed_lines(hunk)),
        touched=span.touched,
    )
