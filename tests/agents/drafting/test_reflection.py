"""Lessons for the drafting agents, from all judgements of a workspace, in one batch (R1.67, X.12)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked
from daiku.domain.runs import RunResult
from daiku.domain.work.documents import Evaluated, KeptEvaluation, Score
from daiku.run.documents import LESSONS, document_request, reflection_request
from daiku.team.rules.drafting.reflection import format_evidence, format_lessons, parse_lessons
from tests.agents.drafting.revising import SCORES, SPEAKERS, Revising, drafted, issues, said

LEARNT = {"lessons": ["Say the result first.", "Name who does it."]}


def learning(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    SPEAKERS["lessons"] = "and now you learn"
    return [*lines, said("lessons", LEARNT)]


def kept(*scores: tuple[str, int, str]) -> KeptEvaluation:
    found = tuple(Score(criterion=name, score=score, advice=advice) for name, score, advice in scores)
    return KeptEvaluation(session="ses_1", path="a.md", evaluation=Evaluated(scores=found, total=0.5))


def test_what_was_met_worst_comes_first_and_what_was_met_is_not_told() -> None:
    """R1.67."""
    told = format_evidence(
        [
            kept(("clear", 3, "Shorter."), ("style", 1, "Plain words.")),
            kept(("clear", 4, ""), ("request", 4, "x")),
        ]
    )
    assert told == (
        "style: 1.0 of 4 on average in 1 texts\n- Plain words.",
        "clear: 3.5 of 4 on average in 2 texts\n- Shorter.",
    )
    assert format_evidence([]) == ()


def test_the_file_of_lessons_is_read_as_it_is_written() -> None:
    assert parse_lessons(format_lessons(["One\nline.", "Two."])) == ("One line.", "Two.")


async def test_one_batch_makes_lessons_of_all_judgements_and_the_next_draft_is_told_them(
    tmp_path: Path,
) -> None:
    """R1.67, X.12: scheduled from outside, a proposal that a person may reject, read by the draft agent."""
    revising = Revising(tmp_path)
    lines = learning(said("draft", drafted("# A\n\nnew")), said("style", issues()), said("eval", SCORES))
    app = revising.app(*lines)
    for text in ("one", "two"):
        revising.write(f"# A\n\n{text}\n")
        await revising.revise(app, f"Renew {text}.")
    assert app.evaluations is not None
    judged = app.evaluations.all(str(revising.project))
    assert len(judged) == 2
    asked: list[asyncio.Task[None]] = []

    def agree(chunk: Chunk) -> None:
        if isinstance(chunk.event, ApprovalAsked):
            given = app.runs.approve(chunk.run, chunk.event.approval_id, "allow_once")
            asked.append(asyncio.ensure_future(given))

    async def learn(found: Sequence[KeptEvaluation]) -> RunResult:
        request = await reflection_request(app.workspace, found)
        return await app.runs.run(replace(request, approvals="edits"), agree)

    result = await learn(judged)
    assert result.status == "completed", result
    assert ".daiku/lessons.md contains 2 lessons" in result.text
    assert len(asked) == 1, (
        "also where edits are granted: what is told to every draft is a person's to accept"
    )
    written = (revising.project / LESSONS).read_text()
    assert parse_lessons(written) == ("Say the result first.", "Name who does it.")
    again = await learn(judged)
    assert "teach nothing new" in again.text
    assert "teach nothing new" in (await learn(())).text
    revising.write("# A\n\nthree\n")
    revising.chunks.clear()
    await revising.revise(app, "Renew three.")
    told = [e.told for e in revising.events("run_started") if "Renew three" in e.told]
    assert "- Say the result first." in told[0]
    untrusted = await document_request(app.workspace, "doc.md", "x", trusted=False)
    assert untrusted.brief is not None
    assert untrusted.brief.document is not None
    assert untrusted.brief.document.lessons == "", "in a folder of strangers a file teaches nobody"
    await app.aclose()
