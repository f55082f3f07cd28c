"""Differences of two texts by lines: operations, counts, and the unified diff that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.core.changes.align import LineOp, line_ops
from daiku.domain.work.patches import FileChange, FileStat, Patch

CONTEXT = 3


def split_lines(text: str) -> list[str]:
    """Lines with their line ends; only `\\n` ends one, whatever else the text holds."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def hunk_groups(ops: Sequence[LineOp]) -> Iterator[list[LineOp]]:
    """Changes with `CONTEXT` equal lines around them; those near one another together."""
    group: list[LineOp] = []
    for index, (op, i, j, k, m) in enumerate(ops):
        if op != "equal":
            group.append((op, i, j, k, m))
            continue
        is_last = index == len(ops) - 1
        if group and (is_last or j - i > 2 * CONTEXT):
            group.append((op, i, min(j, i + CONTEXT), k, min(m, k + CONTEXT)))
            yield group
            group = []
        if not is_last:
            near = 0 if group else max(0, j - i - CONTEXT)
            group.append((op, i + near, j, k + near, m))
    if any(op != "equal" for op, *_ in group):
        yield group


def _range(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _hunk(group: Sequence[LineOp], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    head, last = group[0], group[-1]
    yield f"@@ -{_range(head[1], last[2])} +{_range(head[3], last[4])} @@\n"
    for op, i, j, k, m in group:
        if op == "equal":
            yield from _marked(" ", old[i:j])
            continue
        yield from _marked("-", old[i:j])
        yield from _marked("+", new[k:m])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def unified_diff(change: FileChange) -> str:
    """One file's change as git shows it; empty when nothing changes."""
    old, new = split_lines(change.old or ""), split_lines(change.new or "")
    target = change.to or change.path
    lines: list[str] = []
    if change.to is not None and change.to != change.path:
        lines += (
            f"diff --git a/{change.path} b/{target}\n",
            f"rename from {change.path}\n",
            f"rename to {target}\n",
        )
    hunks = [line for group in hunk_groups(line_ops(old, new)) for line in _hunk(group, old, new)]
    if not hunks:
        return "".join(lines) or _empty_file(change)
    from_name = "/dev/null" if change.old is None else f"a/{change.path}"
    to_name = "/dev/null" if change.new is None else f"b/{target}"
    return "".join([*lines, f"--- {from_name}\n", f"+++ {to_name}\n", *hunks])


def _empty_file(change: FileChange) -> str:
    """Creating or deleting a file without content has no hunk; git says it in words."""
    words = {"create": "new file mode 100644", "delete": "deleted file mode 100644"}.get(change.kind)
    return f"diff --git a/{change.path} b/{change.path}\n{words}\n" if words else ""


def patch_diff(patch: Patch) -> str:
    """The whole patch as one unified diff."""
    return "".join(unified_diff(change) for change in patch.files)


def stat(change: FileChange) -> FileStat:
    """Lines added and removed by one file's change."""
    added = removed = 0
    for op, i, j, k, m in line_ops(split_lines(change.old or ""), split_lines(change.new or "")):
        if op != "equal":
            added += m - k
            removed += j - i
    return FileStat(path=change.to or change.path, kind=change.kind, added=added, removed=removed)
