"""The whole sequence of appendix B (R1.97): routed, drafted, styled, merged, looked up, warned of, judged, near its tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daiku.app import AppParts, build
from daiku.domain.chunks import Chunk
from daiku.domain.events import HandoffEnd, HandoffStart, Notice, RunFinished, ToolCallEvent
from daiku.domain.runs import ContextItem
from daiku.domain.work.documents import Evaluated, PatchMade, ReferencesFound, SimilarityFound
from daiku.guard.guardrails.tokens import TokenGuard
from daiku.models.table import LLMSettings
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings.config import Config, RouterSettings
from daiku.workspace.disk import DiskWorkspace
from tests.agents.drafting.revising import SCORES, drafted, issues, said
from tests.agents.drafting.test_document import REFERENCE
from tests.trace.normalised import compare_with_golden

OLD = "# 屋根\n\nThe ridge is set by hand.\n\n## Rafters\n\nThey are couted twice 😀.\n"
NEW = OLD.replace(
    "The ridge is set by hand.",
    "A house stands on its foundation, and nobody looks at it again until it fails one winter in the rain. "
    f"Nails hold for a while; pegs of oak hold three hundred years if the wood is dry when they are driven in. {REFERENCE[:72]}",
)
USED = {"promptTokens": 2900, "completionTokens": 100}


def shown(chunk: Chunk) -> dict[str, Any] | None:
    """What of a chunk belongs to the flow: who, what, and what was handed over."""
    match chunk.event:
        case HandoffStart(to=to):
            told: dict[str, Any] = {"to": to}
        case HandoffEnd(handover=PatchMade() as made):
            told = {"changes": [c.model_dump(mode="json") for c in made.patch.change_map]}
        case HandoffEnd(handover=ReferencesFound() as found):
            told = {"by": found.by, "sources": [p.source for p in found.passages]}
        case HandoffEnd(handover=SimilarityFound() as found):
            told = {"action": found.action, "nearest": found.nearest.source if found.nearest else ""}
        case HandoffEnd(handover=Evaluated() as found):
            told = {"total": found.total, "scores": {s.criterion: s.score for s in found.scores}}
        case Notice(level=level, text=said_text):
            told = {"level": level, "text": said_text.id}
        case ToolCallEvent(tool="document/apply", args=args):
            told = {"args": args}
        case RunFinished(status=status) if chunk.parent is None:
            told = {"status": status}
        case _:
            return None
    return {"agent": chunk.agent, "type": chunk.type, **told}


async def test_the_full_sequence_is_as_on_record(tmp_path: Path) -> None:
    """R1.97, R1.17, R1.58, R1.50, X.13: Coordinator, router, draft, style, merge, reference, guard warns, evaluation by
    hand-off with rubric, the token guard warns, result; R1.98: its trace lines are golden too."""
    project = tmp_path / "project"
    (project / ".daiku/references").mkdir(parents=True)
    (project / ".daiku/references/crane.md").write_text(f"# Crane\n\n{REFERENCE}\n")
    document = project / "roof.md"
    document.write_text(OLD)
    lines = [
        said("draft", drafted(NEW), usage=USED),
        said("style", issues(("couted", "counted"), ("ridge", "top")), usage=USED),
        said("eval", SCORES, usage=USED),
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"),
        router=RouterSettings(rules=(("(?i)^revise", ("document",)),)),
    )
    given = AppParts(guardrails=(TokenGuard(max_tokens=10_000),))
    app = build(config, workspace=DiskWorkspace((project,)), home=tmp_path / "home", parts=given)
    chunks: list[Chunk] = []
    request = RunRequest(
        "Revise the chapter on roofs.",
        context=(ContextItem(kind="file", uri=document.as_uri()),),
        approvals="edits",
    )
    result = await app.runs.run(request, chunks.append)
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()
    assert result.status == "completed", result
    assert document.read_text() == NEW.replace("couted", "counted")
    flow = [line for chunk in chunks if (line := shown(chunk)) is not None]
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in flow)
    compare_with_golden("document_flow", written, tmp_path)
    [file] = (tmp_path / "home" / "traces").iterdir()
    compare_with_golden("document", file.read_text("utf-8"), tmp_path)
