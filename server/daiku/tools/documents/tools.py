"""Tools of the drafting agents: look up references, compare, evaluate, and apply a change map."""

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
from daiku.tools.tool import Args, Tool, ToolContext, build_failure
from daiku.workspace.globs import build_matcher
from daiku.workspace.walk import walk_files

MAX_FILES, MAX_FILE_SIZE = 500, 1_000_000


def read_references(workspace: Workspace, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file that matches one of `patterns` (relative to a root).

    Hidden files, files larger than MAX_FILE_SIZE bytes, and binary files are left out. Stops after MAX_FILES.
    """
    remaining = MAX_FILES
    for root in workspace.roots if patterns else ():
        matches = build_matcher(tuple(patterns))
        seen_paths = set[str]()
        for folder in dict.fromkeys(root / _find_fixed_prefix(pattern) for pattern in patterns):
            for path in walk_files(workspace.roots, folder) if folder.exists() else ():
                place = path.relative_to(root).as_posix()
                if not remaining or place in seen_paths or not matches(place):
                    continue
                seen_paths.add(place)
                try:
                    if workspace.hidden(path) or path.stat().st_size > MAX_FILE_SIZE:
                        continue
                    content = path.read_text("utf-8-sig")
                except (OSError, UnicodeDecodeError, DaikuError):
                    continue
                remaining -= 1
                yield workspace.relative(path), content


def _find_fixed_prefix(pattern: str) -> str:
    """Return the folder before the first wildcard of a pattern."""
    parts = pattern.lstrip("/").split("/")
    fixed_count = next(
        (n for n, part in enumerate(parts) if any(sign in part for sign in "*?[{!")), len(parts)
    )
    return "/".join(parts[:fixed_count])


class EvaluateArgs(Args):
    """The text to evaluate, and the key under which the evaluation is stored."""

    key: str = Field(description="names text, request, rubric and model")
    request: str = Field(description="what was asked of the text")


def build_evaluate_tool(desk: DocumentDesk) -> Tool:
    """Build the tool `document/evaluate`. Its result is the evaluation as JSON."""

    async def evaluate(args: EvaluateArgs, context: ToolContext) -> ToolResult:
        stored = desk.evaluations.lookup(args.key) if desk.evaluations is not None else None
        if stored is not None:
            return _to_result(stored.model_copy(update={"cached": True}))
        if context.hand_over is None:
            return build_failure("There is nobody to hand over to here.")
        handoff = await context.hand_over("eval", args.request)
        try:
            evaluation = Evaluated.model_validate((handoff.data or {}).get("handover"))
        except ValidationError:
            return handoff.model_copy(update={"data": None})
        if desk.evaluations is not None and context.document is not None:
            roots = context.workspace.roots
            desk.evaluations.keep(
                args.key,
                evaluation,
                workspace=str(roots[0]) if roots else "",
                session=context.session,
                path=context.document.path,
            )
        return _to_result(evaluation)

    return Tool(
        "document/evaluate", "none", EvaluateArgs, evaluate, resumes=True, inner=True,
        face=Face("checklist", Label("Evaluate", "評価"), answer="nothing"),
        description="Have the new paragraphs of the document judged by the rubric.",
    )  # fmt: skip


class ApplyArgs(Args):
    """A change map of the run's document, in code points of the text that was read."""

    path: str = Field(description="the document")
    changes: tuple[Change, ...] = Field(min_length=1, description="sorted, without overlap")


def build_apply_tool(desk: DocumentDesk) -> Tool:
    """Build the tool `document/apply`."""

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
        new = await asyncio.to_thread(apply_changes, old, desk.redact(old), document, args.changes)
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
        FileToolsState(OfferedEdits(), desk.seen_texts, RefusedCalls()),
        face=Face("edit", Label("Revise", "文書を改訂"), "{path}"),
        description="Apply a change map to the document as one edit.",
        inner=True,
    )


def apply_changes(old: str, masked: str, document: Document, changes: tuple[Change, ...]) -> str | Refusal:
    """Apply `changes` of the text that was read to `old`, the current document.

    `masked`: `old` with masked secrets. What the user typed meanwhile stays: a change that overlaps it is
    dropped.
    """
    patch = _to_patch(document.text, changes)
    if isinstance(patch, Refusal):
        return patch
    if masked != document.text:
        user_patch = patch_between(document.text, masked)
        merged = merge_patches(user_patch, patch)
        if len(merged.dropped) == len(changes):
            return Refusal("The document was changed meanwhile wherever it was to be revised. Start again.")
        patch = patch_between(masked, merged.new_text)
    unmasked = unredact(old, masked, MARK, patch.change_map)
    return unmasked if isinstance(unmasked, Refusal) else apply_map(old, unmasked)


def _to_patch(base: str, changes: tuple[Change, ...]) -> PatchJSON | Refusal:
    new = apply_map(base, changes)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=changes)


MAX_PASSAGE = 900
"""Characters of a passage, about one or two paragraphs."""


def split_passages(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into passages, and yield each with the number of its first line.

    A passage is a paragraph. Short ones are joined, long ones are cut.
    """
    first, pending, size = 1, list[str](), 0
    for number, line in enumerate(split_document_lines(text, "markdown"), 1):
        is_break = not line.text.strip() and size > MAX_PASSAGE // 2
        for piece in (
            line.text[offset : offset + MAX_PASSAGE]
            for offset in range(0, max(len(line.text), 1), MAX_PASSAGE)
        ):
            if pending and (is_break or size + len(piece) > MAX_PASSAGE):
                if passage := "\n".join(pending).strip():
                    yield first, passage
                first, pending, size = number, [], 0
            pending.append(piece)
            size += len(piece) + 1
    if passage := "\n".join(pending).strip():
        yield first, passage


MAX_NEAREST = 5
"""Passages that are returned."""


class NearArgs(Args):
    """No arguments: the new paragraphs are those of the run's document."""


def build_reference_tools(desk: DocumentDesk) -> tuple[Tool, ...]:
    """Build the tools `document/references` and `document/similarity`. Their results are JSON."""

    async def find_references(_: NearArgs, context: ToolContext) -> ToolResult:
        document = context.document
        if document is None or not document.passages or desk.references is None:
            return _to_result(ReferencesFound())
        passages = await asyncio.to_thread(lambda: [*_read_passages(desk, document, context)])
        if not passages:
            return _to_result(ReferencesFound())
        try:
            return _to_result(await desk.references().search(passages, document.passages, MAX_NEAREST))
        except DaikuError as error:
            return build_failure(error.failure.message)

    async def compare(_: NearArgs, context: ToolContext) -> ToolResult:
        guard = context.config.guardrails
        result = await asyncio.to_thread(_compare_texts, desk, context.document)
        action = similarity_action(result.score, guard.similarity_warn, guard.similarity_block)
        if action == "warn" and result.nearest is not None:
            notice = text("document.similar", score=f"{result.score:.2f}", source=result.nearest.source)
            context.emit(Notice(level="warning", text=notice))
        return _to_result(result.model_copy(update={"action": action}))

    return (
        Tool(
            "document/references", "read", NearArgs, find_references, inner=True, timeout=120,
            face=Face("references", Label("Look up references", "参照資料を検索"), answer="nothing"),
            description="Find passages of the references that are near to the new text.",
        ),
        Tool(
            "document/similarity", "read", NearArgs, compare, inner=True, timeout=120,
            face=Face("compare-changes", Label("Check similarity", "類似度を確認"), answer="nothing"),
            description="Compare the new text with the references.",
        ),
    )  # fmt: skip


def _to_result(value: Evaluated | ReferencesFound | SimilarityFound) -> ToolResult:
    """Return a tool result with `value` as JSON in text and data."""
    data = value.model_dump(mode="json", by_alias=True)
    return ToolResult(ok=True, text=value.model_dump_json(by_alias=True), data=data)


def _read_passages(desk: DocumentDesk, document: Document, context: ToolContext) -> list[Passage]:
    """Return the passages of all references except the document itself, with masked secrets."""
    return [
        Passage(source=f"{name}:{line}", text=desk.redact(passage), score=0.0)
        for name, content in read_references(context.workspace, context.config.guardrails.references)
        if name != document.path
        for line, passage in split_passages(content)
    ]


def _compare_texts(desk: DocumentDesk, document: Document | None) -> SimilarityFound:
    """Return how much of the new paragraphs is in the text most similar to them (R1.63-R1.65)."""
    if document is None or not document.passages:
        return SimilarityFound()
    own_fingerprints = fingerprints("\n\n".join(document.passages))
    scores = {
        name: similarity(own_fingerprints, other)
        for name, other in desk.known().items()
        if name != document.path
    }
    name = max(scores, key=lambda each: (scores[each], each), default="")
    if not scores.get(name):
        return SimilarityFound()
    score = round(scores[name], 4)
    return SimilarityFound(score=score, nearest=Passage(source=name, text="", score=score))


def build_document_tools(desk: DocumentDesk) -> tuple[Tool, ...]:
    """Build the tools of the drafting agents. Other agents do not get them."""
    return (*build_reference_tools(desk), build_evaluate_tool(desk), build_apply_tool(desk))
