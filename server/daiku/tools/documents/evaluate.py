"""The tool that has a new text judged by hand-off to the evaluator, or finds the judgement that was made before (R1.66)."""

from __future__ import annotations

from pydantic import Field, ValidationError

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.domain.work.documents import Evaluated
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, failed


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


def _told(found: Evaluated) -> ToolResult:
    data = found.model_dump(mode="json", by_alias=True)
    return ToolResult(ok=True, text=found.model_dump_json(by_alias=True), data=data)
