"""The machine that leads a document through its stages: draft, style, reference, guard, evaluation, the edit (X.13)."""

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
from daiku.team.rules.checks import TeamCall, hand
from daiku.team.rules.drafting.progress import (
    APPLY,
    EVALUATE,
    MergedWork,
    Progress,
    evaluation_of,
    merged_work,
    passages_of,
    progress_of,
    references_of,
    similarity_of,
)
from daiku.team.rules.drafting.rubric import rubric_of
from daiku.team.rules.moves import OF_THE_STAGE
from daiku.team.rules.person import with_words
from daiku.team.rules.record import AnsweredCall
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text

NAMED = 5
"""Things of a kind that are named; of the others the number."""
WORDS = 60


def closing_words(done: Progress, merged: MergedWork, *, applied: bool) -> Text:
    """Return the outcome of the work in a few lines."""
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
    """Name the parts whose draft could not be taken."""
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


JUDGED = 24_000
"""Characters of the changed paragraphs that are compared and judged."""
OUTLINE = 8_000
DECIDED = ("guardrail", "limit")
"""Failures of a draft that say themselves what is wrong."""


def next_move(state: State, _approvals: ApprovalMode, refused: Failure | None = None) -> Move:
    """Return the next call of the run on a document, or its closing words. `refused`: why no model can be asked."""
    document = document_of(state)
    if document is None:
        return Failure(kind="usage", message=text("document.none"), hint=text("document.name_one"))
    match _next(state, progress_of(state, document), refused):
        case TeamCall(tool, args, said, asks):
            return MakeCall(ToolCall(tool=tool, args=args), said, asks)
        case Text() as said:
            return EndRun(said)
        case Failure() as failure:
            return failure


def document_of(state: State) -> Document | None:
    """The document that the run was given."""
    return state.request.brief.document if state.request.brief is not None else None


def unfinished(_: State) -> Failure | None:
    """Return None: a run whose last word is said has done what it can."""
    return None


def _next(state: State, done: Progress, refused: Failure | None) -> TeamCall | Text | Failure:
    if (failure := _failure_for_all(done)) is not None:
        return failure
    request = with_words(state, state.request.prompt)
    if done.works is None:
        if refused is not None:
            return refused
        return hand("sections", request, text("document.sections", count=len(done.parts)))
    if (stage := _of_a_part(done, request)) is not None and refused is None:
        return stage
    merged = merged_work(done)
    if not merged.patch.change_map:
        return _nothing(done, refused)
    if done.reference is None:
        return hand("reference", request, text("document.references"))
    if done.guard is None:
        return hand("guard", request, text("document.guard"))
    found = similarity_of(done)
    if found is not None and found.action == "block":
        source = found.nearest.source if found.nearest is not None else ""
        message = text("document.too_similar", score=f"{found.score:.2f}", source=source)
        return Failure(kind="guardrail", message=message, hint=text("document.too_similar_hint"))
    if done.evaluation is None and refused is None:
        return TeamCall(
            EVALUATE, {"key": evaluation_key(state, done), "request": request}, text("document.evaluate")
        )
    if done.applied is None and state.request.mode == "act":
        return _apply(done, merged.patch.model_dump(mode="json", by_alias=True, include={"change_map"}))
    return closing_words(done, merged, applied=state.request.mode == "act")


def _of_a_part(done: Progress, request: str) -> TeamCall | None:
    """The draft of the next part, or its style; None where every part has both."""
    work = done.current
    if work is None:
        return None
    works = done.works or ()
    title = work.part.title or done.document.path
    at = {"number": works.index(work) + 1, "count": len(works), "title": title}
    if len(works) > 1:
        request = f"{request}\n\n(Part {at['number']} of {at['count']}: {title})"
    if work.draft is None:
        return hand("draft", request, text("document.draft", **at))
    return hand("style", request, text("document.style", **at))


def _apply(done: Progress, patch: JsonObject) -> TeamCall:
    args: JsonObject = {"path": done.document.path, "changes": patch["changeMap"]}
    return TeamCall(APPLY, args, text("document.apply"))


def _nothing(done: Progress, refused: Failure | None) -> Text | Failure:
    """The end where no part was changed: that nothing is to be changed, or why no draft could be taken."""
    works = done.works or ()
    failed = [w.draft for w in works if w.draft is not None and w.drafted is None]
    if failed:
        error = failed[0].back.error if failed[0].back is not None else None
        if error is not None and error.kind in DECIDED:
            return error
        return _no_draft(failed[0])
    if refused is not None and (not works or works[-1].draft is None):
        return refused
    if not works and done.sections is not None and not done.sections.ok:
        return _no_draft(done.sections)
    return text("document.nothing_to_change")


def _no_draft(taken: AnsweredCall) -> Failure:
    why = taken.back.problem if taken.back is not None and taken.back.problem else as_text(taken.text)
    message, hint = text("document.no_draft", why=why), text("document.no_draft_hint")
    return Failure(kind="format", message=message, hint=hint)


def _failure_for_all(done: Progress) -> Failure | None:
    """Where a stage could not ask its model at all, no other stage can."""
    calls = [call for work in done.works or () for call in (work.draft, work.style)]
    for taken in (done.sections, *calls, done.evaluation):
        error = taken.back.error if taken is not None and taken.back is not None else None
        if error is not None and error.kind not in OF_THE_STAGE:
            return error
    return None


# ---- what a stage is given


def brief_of(state: State, agent: str, request: str) -> Brief:
    """What a stage is given of the document: its part, the part as drafted, or the paragraphs that are new."""
    document = document_of(state)
    assert document is not None, "the machine hands over only where there is a document"
    done = progress_of(state, document)
    match agent:
        case "sections":
            given = document.model_copy(
                update={"text": "", "outline": outline_of(done), "parts": len(done.parts)}
            )
        case "draft" | "style":
            given = _part(done, drafted=agent == "style")
        case _:
            given = _new_words(done)
    return Brief(request=request, document=given)


def outline_of(done: Progress) -> str:
    """The parts of the document by number, each with its first heading and first words."""
    lines: list[str] = []
    for number, part in enumerate(done.parts, 1):
        words = " ".join(done.document.text[part.start : part.end].split())
        lines.append(f"{number}. {part.title or '-'}: {words[:120]}")
    return "\n".join(lines)


def _part(done: Progress, *, drafted: bool) -> Document:
    work, document = done.current, done.document
    assert work is not None, "handed over only while a part is open"
    new = work.drafted.patch.new_text if drafted and work.drafted is not None else None
    whole = len(done.parts) == 1
    return document.model_copy(
        update={
            "text": document.text[work.part.start : work.part.end] if new is None else new,
            "part": done.parts.index(work.part) + 1,
            "parts": len(done.parts),
            "selection": None,
            "outline": "" if whole else truncate_middle(outline_of(done), OUTLINE),
        }
    )


def _new_words(done: Progress) -> Document:
    merged = merged_work(done)
    found = references_of(done)
    kept: list[str] = []
    room = JUDGED
    for passage in passages_of(done.document, merged.patch):
        kept.append(passage[:room])
        room -= len(kept[-1])
        if room <= 0:
            break
    return done.document.model_copy(
        update={
            "text": "",
            "selection": None,
            "passages": tuple(kept),
            "references": found.passages if found is not None else (),
        }
    )


def evaluation_key(state: State, done: Progress) -> str:
    """The name under which a judgement is kept: it is the same for the same text, request, rubric and model (R1.66)."""
    rubric = rubric_of(done.document).model_dump(mode="json")
    parts = [state.request.model, state.request.prompt, rubric, *_new_words(done).passages]
    written = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
