"""Runs of the agent `document` over a real App: a folder, a document in it, and a model that plays each stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.runs import ApprovalMode, Mode, RunResult
from daiku.models.table import LLMSettings
from daiku.run.documents import document_request
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace

SPEAKERS = {
    "sections": "and now you choose",
    "draft": "and now you write prose",
    "style": "and now you check style",
    "eval": "and now you judge prose",
}
SCORES = {
    "scores": [
        {"criterion": name, "score": 3, "why": "It says so.", "advice": "Say it first."}
        for name in ("request", "correct", "clear", "structure", "style")
    ]
}


def drafted(text: str) -> str:
    """A draft in the form that is asked for."""
    return f"<new-text>\n{text}\n</new-text>"


def said(agent: str, reply: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of the script for one stage."""
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    return {"agent": SPEAKERS[agent], "text": text, **more}


def issues(*found: tuple[str, str]) -> dict[str, Any]:
    """The style agent's reply."""
    return {"issues": [{"quote": quote, "replacement": new} for quote, new in found]}


@dataclass
class Revising:
    """A project with one document, and what its runs showed."""

    folder: Path
    name: str = "doc.md"
    chunks: list[Chunk] = field(default_factory=list[Chunk])

    def __post_init__(self) -> None:
        self.project.mkdir(exist_ok=True)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def path(self) -> Path:
        return self.project / self.name

    def write(self, text: str) -> None:
        self.path.write_bytes(text.encode())

    def text(self) -> str:
        return self.path.read_bytes().decode()

    def app(self, *lines: dict[str, Any], **settings: Any) -> App:
        """An App whose model plays `lines`, each for its own stage."""
        script = self.folder / "script.jsonl"
        script.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
        config = Config(llm=LLMSettings(model=f"scripted/{script}"), **settings)
        return build(config, workspace=DiskWorkspace((self.project,)), home=self.folder / "home")

    async def revise(
        self,
        app: App,
        instruction: str = "Make it clearer.",
        *,
        approvals: ApprovalMode = "edits",
        mode: Mode = "act",
        depth: int = 1,
        session: str | None = None,
        hear: Callable[[Chunk], None] | None = None,
    ) -> RunResult:
        """Revise the document; every chunk is kept in `chunks`."""

        def listen(chunk: Chunk) -> None:
            self.chunks.append(chunk)
            if hear is not None:
                hear(chunk)

        request = await document_request(app.workspace, self.name, instruction, depth=depth)
        return await app.runs.run(replace(request, approvals=approvals, mode=mode, session=session), listen)

    def events(self, kind: str) -> list[Any]:
        """The events of one type, in order."""
        return [chunk.event for chunk in self.chunks if chunk.type == kind]

    def stages(self) -> list[str]:
        """The agents that were handed something, in order."""
        return [event.to for event in self.events("handoff_start")]
