"""Adds the rules of a folder to the conversation when a file below it is first read or edited."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from daiku.agents.rules import nested_rules
from daiku.core.state.recorder import Recorder
from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice
from daiku.domain.tools import ToolCall, ToolResult
from daiku.runs.services import RunServices
from daiku.texts.text import text

MANY = 50
"""Files of one call whose folders are looked at."""


@dataclass(slots=True)
class FolderRules:
    """Tells a run the rules of folders, and keeps which folders it has looked at."""

    services: RunServices
    record: Recorder
    _seen: set[Path] = field(default_factory=set[Path])

    def tell(self, call: ToolCall, result: ToolResult) -> None:
        """Record the rules that hold for the files of `call`, where they are new to the model."""
        paths = tuple(islice(_paths(call, result), MANY))
        if not paths:
            return
        workspace = self.services.workspace
        roots = tuple(root.resolve() for root in workspace.roots)
        for path in paths:
            try:
                place = workspace.locate(path).resolve()
            except (DaikuError, OSError, ValueError):
                continue
            if place.parent in self._seen:
                continue
            self._seen.add(place.parent)
            rules = nested_rules(
                place,
                roots,
                self.record.state.conversation.rules,
                workspace.relative,
                trusted=self.services.trusted,
            )
            if rules:
                names = ", ".join(each.path for each in rules)
                self.record(Notice(level="info", text=text("runs.rules", names=names), rules=rules))


def _paths(call: ToolCall, result: ToolResult) -> Iterator[str]:
    if not call.tool.startswith("files/") or not result.ok:
        return
    for name in ("path", "to"):
        if isinstance(path := call.args.get(name), str):
            yield path
    files = (result.data or {}).get("files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and isinstance(path := file.get("path"), str):
            yield path
