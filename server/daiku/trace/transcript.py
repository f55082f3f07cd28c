"""A session as a text to keep: Markdown for people, JSON and JSON Lines for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
from daiku.domain.sessions import Session
from daiku.trace.export import as_jsonl

OUTPUT_LIMIT = 4000


def export(session: Session, chunks: Sequence[Chunk], form: ExportFormat) -> str:
    """`chunks` (the durable ones of `session`) in the form asked for."""
    match form:
        case "jsonl":
            return "".join(f"{chunk.json()}\n" for chunk in chunks)
        case "json":
            return f'{{"session":{session.model_dump_json(by_alias=True)},"chunks":[{",".join(c.json() for c in chunks)}]}}\n'
        case "trace":
            return as_jsonl(chunks)
        case "markdown":
            title = session.title or session.session_id
            return "\n\n".join([f"# {title}", *_parts(chunks)]) + "\n"
        case _:
            assert_never(form)


def _parts(chunks: Sequence[Chunk]) -> Iterator[str]:
    for chunk in chunks:
        match chunk.event:
            case RunStarted(prompt=prompt):
                yield f"## {chunk.time}\n\n{_quoted(prompt)}"
            case MessageEvent(role="user", text=text):
                yield _quoted(text)
            case MessageEvent(text=text, partial=partial) if text:
                yield f"{text}\n\n*(cut off here)*" if partial else text
            case ToolCallEvent(tool=tool, args=args):
                yield f"**{tool}** `{json.dumps(args, ensure_ascii=False)[:400]}`"
            case ToolResponse(ok=ok, result=result):
                yield f"{'' if ok else 'Failed:'}\n{_fenced(result)}".strip()
            case Edit(diff=diff) if diff:
                yield _fenced(diff, "diff")
            case Review(decision=decision, path=path, hunks=hunks):
                yield f"*{decision}ed: {path}{f' ({hunks})' if hunks else ''}*"
            case Restored(files=files, cannot_undo=stays):
                yield f"*restored: {', '.join(file.path for file in files)}*"
                yield from (f"*not undone:* `{each.command}`" for each in stays)
            case PlanEvent(plan=plan):
                steps = (f"- [{'x' if s.status == 'completed' else ' '}] {s.name}" for s in plan.steps)
                yield "\n".join([f"**{plan.name}**", "", *steps])
            case Failure(message=message, hint=hint):
                yield f"**Error:** {message} {hint}".strip()
            case RunFinished(status=status) if status != "completed":
                yield f"*{status}*"
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
