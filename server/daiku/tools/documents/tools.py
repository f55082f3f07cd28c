"""The tools of the drafting agents: look up references, compare, judge, and apply a change map as one edit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pydantic import Field, ValidationError

from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.domain.work.documents import Document, Evaluated, Passage, ReferencesFound, SimilarityFound
from daiku.domain.work.patches import Change, FileChange, Patch, PatchJSON
from daiku.edits.rules.changes.changemap import apply_map, merge_patches, patch_between, unredact
from daiku.edits.rules.matching.refusal import AS_WANTED, Refusal
from daiku.guard.rules.guardrails.fingerprints import fingerprints, similarity, similarity_action
from daiku.guard.rules.redact import MARK
from daiku.run.rules.outside import Workspace
from daiku.team.rules.drafting.headings import split_document_lines
from daiku.texts.text import text
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.face import Face
from daiku.tools.files.changing import FileToolsState, build_changing_tool, resolve_name
from daiku.tools.files.syntax import OfferedEdits, RefusedCalls
from daiku.tools.tool import Args, Tool, ToolContext, failed
from daiku.workspace.globs import matcher
from daiku.workspace.walk import files

MOST_FILES, MOST_SIZE = 500, 1_000_000


def reference_files(workspace: Workspace, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name and the text of each file that one of `patterns` names (from a root); what is hidden, larger than
    `MOST_SIZE` bytes or no text is left out, and what comes after `MOST_FILES`."""
    left = MOST_FILES
    for root in workspace.roots if patterns else ():
        wanted = matcher(tuple(patterns))
        seen = set[str]()
        for folder in dict.fromkeys(root / _before_wildcards(pattern) for pattern in patterns):
            for path in files(workspace.roots, folder) if folder.exists() else ():
                place = path.relative_to(root).as_posix()
                if not left or place in seen or not wanted(place):
                    continue
                seen.add(place)
                try:
                    if workspace.hidden(path) or path.stat().st_size > MOST_SIZE:
                        continue
                    content = path.read_text("utf-8-sig")
                except (OSError, UnicodeDecodeError, DaikuError):
                    continue
                left -= 1
                yield workspace.relative(path), content


def _before_wildcards(pattern: str) -> str:
    """The folder in which the files of a pattern stand."""
    parts = pattern.lstrip("/").split("/")
    plain = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[{!")), len(parts))
    return "/".join(parts[:plain])


class EvaluateArgs(Args):
    """What is judged, under the name by which its judgement is kept."""

    key: str = Field(description="names text, request, rubric and model")
    request: str = Field(description="what was asked of the text")


def evaluate_tool(desk: DocumentDesk) -> Tool:
    """The tool `document/evaluate`. Its result is the judgement as JSON."""

    async def evaluate(args: EvaluateArgs, context: ToolContext) -> ToolResult:
        kept = desk.evaluations.lookup(args.key) if desk.evaluations is not None else None
        if kept is not None:
            return _told(kept.model_copy(update={"cached": True}))
        if context.hand_over is None:
            return failed("There is nobody to hand over to here.")
        done = await context.hand_over("eval", args.request)
        try:
            found = Evaluated.model_validate((done.data or {}).get("handover"))
        except ValidationError:
            return done.model_copy(update={"data": None})
        if desk.evaluations is not None and context.document is not None:
            roots = context.workspace.roots
            desk.evaluations.keep(
                args.key,
                found,
                workspace=str(roots[0]) if roots else "",
                session=context.session,
                path=context.document.path,
            )
        return _told(found)

    return Tool(
        "document/evaluate", "none", EvaluateArgs, evaluate, resumes=True, inner=True,
        face=Face("checklist", Label("Judge", "評価"), answer="nothing"),
        description="Have the new paragraphs of the document judged by the rubric.",
    )  # fmt: skip


class ApplyArgs(Args):
    """A change map of the document that the run works on, in code points of its text as it was read."""

    path: str = Field(description="the document")
    changes: tuple[Change, ...] = Field(min_length=1, description="sorted, without overlap")


def apply_tool(desk: DocumentDesk) -> Tool:
    """The tool `document/apply`."""

    async def build(args: ApplyArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
        document = context.document
        if document is None or document.path != args.path:
            return Refusal("This run works on no such document.")
        name = resolve_name(args.path, context)
        if not await context.workspace.exists(args.path):
            if document.text:
                return Refusal(f"{name} is gone.")
            new = apply_map("", args.changes)
            return (
                new
                if isinstance(new, Refusal)
                else Patch(files=(FileChange(path=name, kind="create", new=new),))
            )
        old = (await context.workspace.read(args.path)).text
        new = await asyncio.to_thread(changed, old, desk.redact(old), document, args.changes)
        if isinstance(new, Refusal):
            return new.within(name)
        if new == old:
            return Refusal(f"{name}: {AS_WANTED}", as_wanted=True)
        return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))

    return build_changing_tool(
        "document/apply",
        ApplyArgs,
        text("edits.document"),
        build,
        FileToolsState(OfferedEdits(), desk.seen, RefusedCalls()),
        face=Face("edit", Label("Revise", "文書を改訂"), "{path}"),
        description="Apply a change map to the document as one edit.",
        inner=True,
    )


def changed(old: str, shown: str, document: Document, changes: tuple[Change, ...]) -> str | Refusal:
    """`old`, the document as it stands, with `changes` of the text that was read made in it. `shown` is `old` with
    its secrets blacked out. What a person typed meanwhile stays: where a change overlaps it, the change goes."""
    ours = _as_patch(document.text, changes)
    if isinstance(ours, Refusal):
        return ours
    if shown != document.text:
        typed = patch_between(document.text, shown)
        merged = merge_patches(typed, ours)
        if len(merged.dropped) == len(changes):
            return Refusal("The document was changed meanwhile wherever it was to be revised. Start again.")
        ours = patch_between(shown, merged.new_text)
    real = unredact(old, shown, MARK, ours.change_map)
    return real if isinstance(real, Refusal) else apply_map(old, real)


def _as_patch(base: str, changes: tuple[Change, ...]) -> PatchJSON | Refusal:
    new = apply_map(base, changes)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=changes)


LONGEST = 900
"""Characters of a passage, about a paragraph or two."""


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Divide a text into passages, each with the number of its first line.

    A passage is a paragraph; short ones are joined, long ones cut."""
    first, kept, size = 1, list[str](), 0
    for number, line in enumerate(split_document_lines(text, "markdown"), 1):
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


def _told(found: Evaluated | ReferencesFound | SimilarityFound) -> ToolResult:
    """Return the result of a tool whose text and data are `found` as JSON."""
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


def document_tools(desk: DocumentDesk) -> tuple[Tool, ...]:
    """The tools of the drafting agents; no other agent is offered them."""
    return (*near_tools(desk), evaluate_tool(desk), apply_tool(desk))
