"""Files of the workspace before and after a command, compared by content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from daiku.core.proof.transitions import to_data
from daiku.core.run.command_reach import acts_only_on_files, may_change_files
from daiku.domain.tools import ToolResult
from daiku.domain.work.handovers import FileTransition
from daiku.tools.shell.preparing import Prepared, rules_of
from daiku.tools.tool import ToolContext
from daiku.workspace.fingerprints import TreeState, changes_since, read_tree

MOST_LISTED = 200
"""Changed files that a result lists. Those beyond count as changed for good."""


def read_before(prepared: Prepared) -> TreeState | None:
    """Read the workspace before a command; None if the command changes no file, or there are too many. Blocks."""
    return read_tree(prepared.roots) if may_change_files(prepared.command) else None


async def add_changes(
    result: ToolResult, before: TreeState | None, prepared: Prepared, context: ToolContext
) -> ToolResult:
    """Return `result` with the files that the command changed, unless it may also have effects elsewhere."""
    if before is None:
        return result
    changes = await asyncio.to_thread(changes_since, before, prepared.roots)
    if changes is None or (not changes and not _acts_only_on_files(prepared, context)):
        return result
    named = (
        FileTransition(path=context.workspace.relative(Path(path)), before=old, after=new)
        for path, old, new in changes[:MOST_LISTED]
    )
    more = [FileTransition(path="…", before="", after="more")] if len(changes) > MOST_LISTED else []
    return _with_changes(result, (*named, *more))


def add_no_changes(result: ToolResult, prepared: Prepared, context: ToolContext) -> ToolResult:
    """Return the result of a trial that wrote nothing, with that fact."""
    return _with_changes(result, ()) if _acts_only_on_files(prepared, context) else result


def _with_changes(result: ToolResult, transitions: Iterable[FileTransition]) -> ToolResult:
    return result.model_copy(update={"data": {**(result.data or {}), **to_data(transitions)}})


def _acts_only_on_files(prepared: Prepared, context: ToolContext) -> bool:
    bounds = prepared.bounds
    contained = bounds is not None and not bounds.network and not context.config.sandbox.write
    resolve = rules_of(context, prepared.folder).resolve

    def is_elsewhere(word: str) -> bool:
        """Return True for a path outside. A pattern, such as `/x/d` of sed, lies in no folder that there is."""
        return word[0] in "~$" or (resolve(word) is None and (prepared.folder / word).parent.is_dir())

    return acts_only_on_files(prepared.command, is_elsewhere, contained=contained)
