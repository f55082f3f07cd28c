"""State machine that leads a document through draft, style, reference, guard, evaluation, and edit (X.13)."""

from __future__ import annotations

import hashlib
import json

from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.documents import Document, Evaluated
from daiku.domain.work.handovers import Brief
from daiku.domain.work.patches import FileChange
from daiku.edits.rules.changes.diff import stat
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import TeamCall, build_handoff
from daiku.team.rules.drafting.progress import (
    APPLY,
    EVALUATE,
    DocumentProgress,
    MergedWork,
    find_changed_passages,
    find_evaluation,
    find_progress,
    find_references,
    find_similarity,
    merge_work,
)
from daiku.team.rules.drafting.rubric import find_rubric
from daiku.team.rules.moves import STAGE_FAILURES
from daiku.team.rules.record import AnsweredCall, add_user_messages
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text

MAX_LISTED = 5
"""Maximum number of items of a kind that are listed by name."""
WORDS = 60


def build_closing_words(progress: DocumentProgress, merged: MergedWork, *, applied: bool) -> Text:
    """Return the outcome of the work in a few lines."""
    parts = [
        _format_change(progress, merged, applied=applied),
        _format_failed_parts(progress),
        _format_dropped(merged),
        _format_similarity(progress),
        _format_references(progress),
        _format_scores(find_evaluation(progress)),
    ]
    return joined("lines", [part for part in parts if part])


def _format_change(progress: DocumentProgress, merged: MergedWork, *, applied: bool) -> Text:
    change = FileChange(
        path=progress.document.path, kind="edit", old=progress.document.text, new=merged.patch.new_text
    )
    statistics = stat(change)
    numbers = {"path": change.path, "added": statistics.added, "removed": statistics.removed}
    if not applied:
        return text("document.only_proposed", **numbers)
    entry = progress.applied
    if entry is not None and entry.ok:
        return text("document.changed", **numbers)
    return text("document.not_applied", why=as_text(entry.text) if entry is not None else NO_TEXT)


def _format_failed_parts(progress: DocumentProgress) -> Text:
    """List the parts without a usable draft."""
    failed = [w for w in progress.works or () if w.draft is not None and w.draft_patch is None]
    if not failed:
        return NO_TEXT
    names = ", ".join(f"“{w.part.title}”" for w in failed[:MAX_LISTED])
    return text("document.parts_left", count=len(failed), names=names)


def _format_dropped(merged: MergedWork) -> Text:
    names = [
        f"“{unplaced.issue.quote[:WORDS] or unplaced.issue.replacement[:WORDS]}”"
        for unplaced in merged.unplaced
    ]
    names += [f"“{words[:WORDS]}”" for words in merged.dropped]
    if not names:
        return NO_TEXT
    return text("document.style_dropped", count=len(names), names=", ".join(names[:MAX_LISTED]))


def _format_similarity(progress: DocumentProgress) -> Text:
    similarity = find_similarity(progress)
    if similarity is None or similarity.action == "pass":
        return NO_TEXT
    source = similarity.nearest.source if similarity.nearest is not None else ""
    return text("document.similar", score=f"{similarity.score:.2f}", source=source)


def _format_references(progress: DocumentProgress) -> Text:
    references = find_references(progress)
    if references is None or not references.passages:
        return NO_TEXT
    names = ", ".join(dict.fromkeys(f"{p.source} ({p.score:.2f})" for p in references.passages[:MAX_LISTED]))
    return text("document.near", names=names)


def _format_scores(evaluation: Evaluated | None) -> Text:
    if evaluation is None:
        return text("document.not_judged")
    scores = ", ".join(f"{score.criterion} {score.score}/4" for score in evaluation.scores)
    key = "document.scores_cached" if evaluation.cached else "document.scores"
    return text(key, total=f"{evaluation.total:.2f}", scores=scores)


MAX_EVALUATED = 24_000
"""Maximum characters of the changed paragraphs that are compared and evaluated."""
OUTLINE = 8_000
SELF_EXPLAINING = ("guardrail", "limit")
"""Kinds of draft failures whose own message is shown."""


def next_move(state: State, _approvals: ApprovalMode, model_failure: Failure | None = None) -> Move:
    """Return the run's next call, or its closing text. `model_failure`: why no model can be asked."""
    document = find_document(state)
    if document is None:
        return Failure(kind="usage", message=text("document.none"), hint=text("document.name_one"))
    match _decide(state, find_progress(state, document), model_failure):
        case TeamCall(tool, args, words, asks):
            return MakeCall(ToolCall(tool=tool, args=args), words, asks)
        case Text() as words:
            return EndRun(words)
        case Failure() as failure:
            return failure


def find_document(state: State) -> Document | None:
    """Return the document in the run's brief."""
    return state.request.brief.document if state.request.brief is not None else None


def unfinished(_: State) -> Failure | None:
    """Return None: a document run that ended normally has succeeded."""
    return None


def _decide(
    state: State, progress: DocumentProgress, model_failure: Failure | None
) -> TeamCall | Text | Failure:
    if (failure := _find_general_failure(progress)) is not None:
        return failure
    request = add_user_messages(state, state.request.prompt)
    if progress.works is None:
        if model_failure is not None:
            return model_failure
        return build_handoff("sections", request, text("document.sections", count=len(progress.parts)))
    if (stage := _hand_off_part(progress, request)) is not None and model_failure is None:
        return stage
    merged = merge_work(progress)
    if not merged.patch.change_map:
        return _build_unchanged_ending(progress, model_failure)
    if progress.reference is None:
        return build_handoff("reference", request, text("document.references"))
    if progress.guard is None:
        return build_handoff("guard", request, text("document.guard"))
    similarity = find_similarity(progress)
    if similarity is not None and similarity.action == "block":
        source = similarity.nearest.source if similarity.nearest is not None else ""
        message = text("document.too_similar", score=f"{similarity.score:.2f}", source=source)
        return Failure(kind="guardrail", message=message, hint=text("document.too_similar_hint"))
    if progress.evaluation is None and model_failure is None:
        return TeamCall(
            EVALUATE,
            {"key": build_evaluation_key(state, progress), "request": request},
            text("document.evaluate"),
        )
    if progress.applied is None and state.request.mode == "act":
        return _build_apply(
            progress, merged.patch.model_dump(mode="json", by_alias=True, include={"change_map"})
        )
    return build_closing_words(progress, merged, applied=state.request.mode == "act")


def _hand_off_part(progress: DocumentProgress, request: str) -> TeamCall | None:
    """Return the handoff that drafts or styles the next part; None if every part has both."""
    work = progress.current
    if work is None:
        return None
    works = progress.works or ()
    title = work.part.title or progress.document.path
    values = {"number": works.index(work) + 1, "count": len(works), "title": title}
    if len(works) > 1:
        request = f"{request}\n\n(Part {values['number']} of {values['count']}: {title})"
    if work.draft is None:
        return build_handoff("draft", request, text("document.draft", **values))
    return build_handoff("style", request, text("document.style", **values))


def _build_apply(progress: DocumentProgress, patch: JsonObject) -> TeamCall:
    args: JsonObject = {"path": progress.document.path, "changes": patch["changeMap"]}
    return TeamCall(APPLY, args, text("document.apply"))


def _build_unchanged_ending(progress: DocumentProgress, model_failure: Failure | None) -> Text | Failure:
    """Return the ending when no part was changed: nothing to change, or why there is no draft."""
    works = progress.works or ()
    failed = [w.draft for w in works if w.draft is not None and w.draft_patch is None]
    if failed:
        error = failed[0].handoff.error if failed[0].handoff is not None else None
        if error is not None and error.kind in SELF_EXPLAINING:
            return error
        return _build_no_draft(failed[0])
    if model_failure is not None and (not works or works[-1].draft is None):
        return model_failure
    if not works and progress.sections is not None and not progress.sections.ok:
        return _build_no_draft(progress.sections)
    return text("document.nothing_to_change")


def _build_no_draft(entry: AnsweredCall) -> Failure:
    why = (
        entry.handoff.problem if entry.handoff is not None and entry.handoff.problem else as_text(entry.text)
    )
    message, hint = text("document.no_draft", why=why), text("document.no_draft_hint")
    return Failure(kind="format", message=message, hint=hint)


def _find_general_failure(progress: DocumentProgress) -> Failure | None:
    """Return the failure of a stage that could not ask its model: no other stage can."""
    calls = [call for work in progress.works or () for call in (work.draft, work.style)]
    for entry in (progress.sections, *calls, progress.evaluation):
        error = entry.handoff.error if entry is not None and entry.handoff is not None else None
        if error is not None and error.kind not in STAGE_FAILURES:
            return error
    return None


# ---- the briefs of the stages


def build_brief(state: State, agent: str, request: str) -> Brief:
    """Build a stage's brief: the document's outline, its part, the part's draft, or the new paragraphs."""
    document = find_document(state)
    assert document is not None, "handoffs need a document"
    progress = find_progress(state, document)
    match agent:
        case "sections":
            excerpt = document.model_copy(
                update={"text": "", "outline": format_outline(progress), "parts": len(progress.parts)}
            )
        case "draft" | "style":
            excerpt = _build_part_document(progress, drafted=agent == "style")
        case _:
            excerpt = _build_passages_document(progress)
    return Brief(request=request, document=excerpt)


def format_outline(progress: DocumentProgress) -> str:
    """Format the parts of the document by number, each with its first heading and first words."""
    lines: list[str] = []
    for number, part in enumerate(progress.parts, 1):
        words = " ".join(progress.document.text[part.start : part.end].split())
        lines.append(f"{number}. {part.title or '-'}: {words[:120]}")
    return "\n".join(lines)


def _build_part_document(progress: DocumentProgress, *, drafted: bool) -> Document:
    work, document = progress.current, progress.document
    assert work is not None, "handoffs need an open part"
    new = work.draft_patch.patch.new_text if drafted and work.draft_patch is not None else None
    is_single = len(progress.parts) == 1
    return document.model_copy(
        update={
            "text": document.text[work.part.start : work.part.end] if new is None else new,
            "part": progress.parts.index(work.part) + 1,
            "parts": len(progress.parts),
            "selection": None,
            "outline": "" if is_single else truncate_middle(format_outline(progress), OUTLINE),
        }
    )


def _build_passages_document(progress: DocumentProgress) -> Document:
    merged = merge_work(progress)
    references = find_references(progress)
    passages: list[str] = []
    space_left = MAX_EVALUATED
    for passage in find_changed_passages(progress.document, merged.patch):
        passages.append(passage[:space_left])
        space_left -= len(passages[-1])
        if space_left <= 0:
            break
    return progress.document.model_copy(
        update={
            "text": "",
            "selection": None,
            "passages": tuple(passages),
            "references": references.passages if references is not None else (),
        }
    )


def build_evaluation_key(state: State, progress: DocumentProgress) -> str:
    """Return the cache key of an evaluation: a hash of text, request, rubric, and model (R1.66)."""
    rubric = find_rubric(progress.document).model_dump(mode="json")
    parts = [state.request.model, state.request.prompt, rubric, *_build_passages_document(progress).passages]
    serialized = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(serialized.encode("utf-8", "surrogatepass")).hexdigest()
