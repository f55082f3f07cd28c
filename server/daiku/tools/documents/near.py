"""The tools that compare a new text with the workspace's references: what is near to it, and how like it is to one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from daiku.core.drafting.headings import lines_of
from daiku.core.guardrails.fingerprints import fingerprints, similarity, similarity_action
from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.domain.work.documents import Document, Passage, ReferencesFound, SimilarityFound
from daiku.texts.text import text
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, failed
from daiku.workspace.references import reference_files

LONGEST = 900
"""Characters of a passage, about a paragraph or two."""


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Divide a text into passages, each with the number of its first line.

    A passage is a paragraph; short ones are joined, long ones cut."""
    first, kept, size = 1, list[str](), 0
    for number, line in enumerate(lines_of(text, "markdown"), 1):
        ends = not line.text.strip() and size > LONGEST // 2
        for piece in (line.text[at : at + LONGEST] for at in range(0, max(len(line.text), 1), LONGEST)):
            if kept and (ends or size + len(piece) > LONGEST):
                if joined := "\n".join(kept).strip():
                    yield first, joined
                first, kept, size = number, [], 0
            kept.append(piece)
            size += len(piece) + 1
    if joined := "\n".join(kept).strip():
        yield first, joined


NEAREST = 5


class NearArgs(Args):
    """Nothing: the new paragraphs are those of the document that the run works on."""


def near_tools(desk: DocumentDesk) -> tuple[Tool, ...]:
    """The tools `document/references` and `document/similarity`. Their results are JSON."""

    async def look(_: NearArgs, context: ToolContext) -> ToolResult:
        document = context.document
        if document is None or not document.passages or desk.references is None:
            return _told(ReferencesFound())
        here = await asyncio.to_thread(lambda: [*_passages(desk, document, context)])
        if not here:
            return _told(ReferencesFound())
        try:
            return _told(await desk.references().search(here, document.passages, NEAREST))
        except DaikuError as wrong:
            return failed(wrong.failure.message)

    async def compare(_: NearArgs, context: ToolContext) -> ToolResult:
        guard = context.config.guardrails
        found = await asyncio.to_thread(_compared, desk, context.document)
        action = similarity_action(found.score, guard.similarity_warn, guard.similarity_block)
        if action == "warn" and found.nearest is not None:
            said = text("document.similar", score=f"{found.score:.2f}", source=found.nearest.source)
            context.emit(Notice(level="warning", text=said))
        return _told(found.model_copy(update={"action": action}))

    return (
        Tool(
            "document/references", "read", NearArgs, look, inner=True, timeout=120,
            face=Face("references", Label("Look up references", "参照資料を検索"), answer="nothing"),
            description="Find passages of the references that are near to the new text.",
        ),
        Tool(
            "document/similarity", "read", NearArgs, compare, inner=True, timeout=120,
            face=Face("compare-changes", Label("Compare", "類似度を確認"), answer="nothing"),
            description="Compare the new text with the references.",
        ),
    )  # fmt: skip


def _told(found: ReferencesFound | SimilarityFound) -> ToolResult:
    data = found.model_dump(mode="json", by_alias=True)
    return ToolResult(ok=True, text=found.model_dump_json(by_alias=True), data=data)


def _passages(desk: DocumentDesk, document: Document, context: ToolContext) -> list[Passage]:
    """The passages of all references but the document itself, secrets blacked out."""
    return [
        Passage(source=f"{name}:{line}", text=desk.redact(passage), score=0.0)
        for name, content in reference_files(context.workspace, context.config.guardrails.references)
        if name != document.path
        for line, passage in passages(content)
    ]


def _compared(desk: DocumentDesk, document: Document | None) -> SimilarityFound:
    """How much of the new paragraphs stands in the text that they are most like (R1.63-R1.65)."""
    if document is None or not document.passages:
        return SimilarityFound()
    ours = fingerprints("\n\n".join(document.passages))
    scores = {name: similarity(ours, other) for name, other in desk.known().items() if name != document.path}
    name = max(scores, key=lambda each: (scores[each], each), default="")
    if not scores.get(name):
        return SimilarityFound()
    score = round(scores[name], 4)
    return SimilarityFound(score=score, nearest=Passage(source=name, text="", score=score))
