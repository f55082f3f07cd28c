"""The reference files of a workspace: what new texts are compared with and searched for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.core.ports import Workspace
from daiku.domain.errors import DaikuError
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
