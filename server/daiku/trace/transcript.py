"""A session as a text to keep: Markdown for people, JSON and JSON Lines for programs."""

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
_DECIDED: Mapping[ReviewDecision, str] = {"accept": "transcript.accept", "reject": "transcript.reject"}
_ENDED: Mapping[RunStatus, str] = {
    "completed_unverified": "transcript.unverified",
    "cancelled": "transcript.cancelled",
    "failed": "transcript.failed",
    "limit": "transcript.limit",
    "paused": "transcript.paused",
}


def export(session: Session, chunks: Sequence[Chunk], form: ExportFormat, language: str) -> str:
    """Export the durable `chunks` of `session` in a form: in `language` for people, as recorded for programs."""
    match form:
        case "jsonl":
            return "".join(f"{chunk.json()}\n" for chunk in chunks)
        case "json":
            return f'{{"session":{session.model_dump_json(by_alias=True)},"chunks":[{",".join(c.json() for c in chunks)}]}}\n'
        case "trace":
            return as_jsonl(chunks)
        case "markdown":
            title = session.title or session.session_id
            return "\n\n".join([f"# {title}", *_parts(chunks, language)]) + "\n"
        case _:
            assert_never(form)


def _parts(chunks: Sequence[Chunk], language: str) -> Iterator[str]:
    def our(text: Text) -> str:
        return render(text, language)

    for chunk in chunks:
        event = chunk.in_language(language).event
        match event:
            case RunStarted(prompt=prompt) if prompt or chunk.parent is None:
                yield f"## {chunk.time}\n\n{_quoted(prompt)}"
            case MessageEvent(role="user", text=said):
                yield _quoted(said)
            case MessageEvent(text=said, partial=partial) if said:
                yield f"{said}\n\n*({our(text('transcript.cut_off'))})*" if partial else said
            case ToolCallEvent(tool=tool, args=args):
                yield f"**{tool}** `{json.dumps(args, ensure_ascii=False)[:400]}`"
            case ToolResponse(ok=ok, result=result):
                result = render(read_shown_sources(event), language) or result
                yield f"{'' if ok else our(text('transcript.failed_call'))}\n{_fenced(result)}".strip()
            case Edit(diff=diff) if diff:
                yield _fenced(diff, "diff")
            case Review(decision=decision, path=path, hunks=hunks):
                yield f"*{our(text(_DECIDED[decision], path=path))}{f' ({hunks})' if hunks else ''}*"
            case Restored(files=files, cannot_undo=stays):
                yield f"*{our(text('transcript.restored', files=', '.join(file.path for file in files)))}*"
                yield from (f"*{our(text('transcript.not_undone'))}* `{each.command}`" for each in stays)
            case PlanEvent(plan=plan):
                steps = (f"- [{'x' if s.status == 'completed' else ' '}] {s.name}" for s in plan.steps)
                yield "\n".join([f"**{plan.name}**", "", *steps])
            case Failure(message=message, hint=hint):
                yield f"**{our(text('transcript.error'))}** {message} {hint}".strip()
            case RunFinished(status=status, reasons=reasons) if status != "completed":
                yield f"*{our(unverified_note(reasons) or text(_ENDED[status]))}*"
            case _:
                pass


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines() or [""])


def _fenced(text: str, kind: str = "") -> str:
    """`text` in a fence longer than any in it; its end is cut where it is very long."""
    cut = text if len(text) <= OUTPUT_LIMIT else text[:OUTPUT_LIMIT] + f"\n… {len(text) - OUTPUT_LIMIT} more"
    fence = "```"
    while fence in cut:
        fence += "`"
    return f"{fence}{kind}\n{cut.rstrip()}\n{fence}"
