"""Exports of a session: Markdown for people, JSON and JSON Lines for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from daiku.api import ExportFormat
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    Edit,
    MessageEvent,
    PlanEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.runs import RunStatus, unverified_note
from daiku.domain.sessions import Session
from daiku.domain.work.patches import ReviewDecision
from daiku.texts.text import Text, render, text
from daiku.tools.rules.web.research import read_shown_sources
from daiku.trace.rules.lines import as_jsonl

OUTPUT_LIMIT = 4000
"""Characters of one output in Markdown, at most."""
_DECISION_TEXTS: Mapping[ReviewDecision, str] = {"accept": "transcript.accept", "reject": "transcript.reject"}
_STATUS_TEXTS: Mapping[RunStatus, str] = {
    "completed_unverified": "transcript.unverified",
    "cancelled": "transcript.cancelled",
    "failed": "transcript.failed",
    "limit": "transcript.limit",
    "paused": "transcript.paused",
}


def export(session: Session, chunks: Sequence[Chunk], form: ExportFormat, language: str) -> str:
    """Export the durable `chunks` of `session`; Markdown is in `language`, other forms are as recorded."""
    match form:
        case "jsonl":
            return "".join(f"{chunk.json()}\n" for chunk in chunks)
        case "json":
            return f'{{"session":{session.model_dump_json(by_alias=True)},"chunks":[{",".join(c.json() for c in chunks)}]}}\n'
        case "trace":
            return as_jsonl(chunks)
        case "markdown":
            title = session.title or session.session_id
            return "\n\n".join([f"# {title}", *_format_chunks(chunks, language)]) + "\n"
        case _:
            assert_never(form)


def _format_chunks(chunks: Sequence[Chunk], language: str) -> Iterator[str]:
    def translate(text: Text) -> str:
        return render(text, language)

    for chunk in chunks:
        event = chunk.in_language(language).event
        match event:
            case RunStarted(prompt=prompt) if prompt or chunk.parent is None:
                yield f"## {chunk.time}\n\n{_quote(prompt)}"
            case MessageEvent(role="user", text=message):
                yield _quote(message)
            case MessageEvent(text=message, partial=partial) if message:
                yield f"{message}\n\n*({translate(text('transcript.cut_off'))})*" if partial else message
            case ToolCallEvent(tool=tool, args=args):
                yield f"**{tool}** `{json.dumps(args, ensure_ascii=False)[:400]}`"
            case ToolResponse(ok=ok, result=result):
                result = render(read_shown_sources(event), language) or result
                yield f"{'' if ok else translate(text('transcript.failed_call'))}\n{_fence(result)}".strip()
            case Edit(diff=diff) if diff:
                yield _fence(diff, "diff")
            case Review(decision=decision, path=path, hunks=hunks):
                yield f"*{translate(text(_DECISION_TEXTS[decision], path=path))}{f' ({hunks})' if hunks else ''}*"
            case Restored(files=files, cannot_undo=irrevocable):
                yield f"*{translate(text('transcript.restored', files=', '.join(file.path for file in files)))}*"
                yield from (
                    f"*{translate(text('transcript.not_undone'))}* `{each.command}`" for each in irrevocable
                )
            case PlanEvent(plan=plan):
                steps = (f"- [{'x' if s.status == 'completed' else ' '}] {s.name}" for s in plan.steps)
                yield "\n".join([f"**{plan.name}**", "", *steps])
            case Failure(message=message, hint=hint):
                yield f"**{translate(text('transcript.error'))}** {message} {hint}".strip()
            case RunFinished(status=status, reasons=reasons) if status != "completed":
                yield f"*{translate(unverified_note(reasons) or text(_STATUS_TEXTS[status]))}*"
            case _:
                pass


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines() or [""])


def _fence(text: str, kind: str = "") -> str:
    """Return `text` in a fence longer than any inside; a long text is truncated."""
    truncated = (
        text if len(text) <= OUTPUT_LIMIT else text[:OUTPUT_LIMIT] + f"\n… {len(text) - OUTPUT_LIMIT} more"
    )
    fence = "```"
    while fence in truncated:
        fence += "`"
    return f"{fence}{kind}\n{truncated.rstrip()}\n{fence}"
