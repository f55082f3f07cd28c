"""How a tool call is shown in ACP: its kind, title, places and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from acp.schema import FileEditToolCallContent, ToolCallLocation, ToolKind

from daiku.core.edits.udiff import FileDiff, parse_udiff
from daiku.core.matching.hunk import HunkLine
from daiku.core.matching.refusal import Refusal
from daiku.core.text.visible import show_hidden
from daiku.domain.base import JsonObject
from daiku.domain.work.patches import FileChange
from daiku.tools.face import subject_of
from daiku.tools.table import faces

Place = Callable[[str], str | None]
"""The absolute path of a file that a tool names; None where it is outside the workspace."""

_KINDS: Mapping[str, ToolKind] = {
    "files/read": "read", "files/list": "search", "search/": "search", "editor/": "search",
    "files/write": "edit", "files/edit": "edit", "files/patch": "edit", "files/move": "move",
    "files/delete": "delete", "shell/": "execute", "git/commit": "execute", "git/": "read",
    "web/": "fetch", "plan/": "think", "task/": "think", "task_loop/": "think", "todo/": "think",
    "playbook/": "search", "agent/": "think", "agents/": "think", "tools/": "search",
}  # fmt: skip
"""By a tool's name, or the room of it (with `/`)."""
MOST_TITLE = 200
"""Characters of a title: a command may be a whole script."""


def kind_of(tool: str) -> ToolKind:
    """The ACP kind of a tool; `other` for those of other packages and servers."""
    return _KINDS.get(tool) or _KINDS.get(f"{tool.partition('/')[0]}/", "other")


def title_of(tool: str, args: JsonObject, language: str) -> str:
    """Return what the call does in one line, with hidden characters as escapes."""
    face = faces().get(tool)
    if face is None:
        return tool
    subject = " ".join(show_hidden(subject_of(face, args)).split())
    whole = f"{face.label.text(language)} {subject}".strip()
    return whole if len(whole) <= MOST_TITLE else f"{whole[: MOST_TITLE - 1]}…"


def locations_of(args: JsonObject, place: Place) -> list[ToolCallLocation]:
    """The files that a call names, with the line where it begins to read."""
    line = args.get("start_line", args.get("line"))
    first = max(0, line) if isinstance(line, int) and not isinstance(line, bool) else None
    named = [(args.get("path"), first), (args.get("to"), None)]
    return [
        ToolCallLocation(path=path, line=at)
        for name, at in named
        if isinstance(name, str) and (path := place(name)) is not None
    ]


def places_of(paths: Iterable[str], place: Place) -> list[ToolCallLocation]:
    """The files that were changed."""
    return [ToolCallLocation(path=path) for name in paths if (path := place(name)) is not None]


def whole_differences(changes: Sequence[FileChange], place: Place) -> list[FileEditToolCallContent]:
    """Changes with the whole texts before and after."""
    return [
        FileEditToolCallContent(type="diff", path=path, old_text=change.old, new_text=change.new or "")
        for change in changes
        if (path := place(change.to or change.path)) is not None
    ]


def differences(diff: str, place: Place) -> list[FileEditToolCallContent]:
    """The parts of a unified diff: each hunk with its text before and after; of a new file without a text before."""
    if not diff:
        return []
    files = parse_udiff(diff)
    if isinstance(files, Refusal):
        return []
    return [content for file in files for content in _of_file(file, place)]


def _of_file(file: FileDiff, place: Place) -> Iterator[FileEditToolCallContent]:
    path = place(file.new or file.old or "")
    if path is None:
        return
    for hunk in file.hunks:
        old, new = _side(hunk.lines, "+"), _side(hunk.lines, "-")
        before = None if file.old is None else old
        yield FileEditToolCallContent(type="diff", path=path, old_text=before, new_text=new)


def _side(lines: Sequence[HunkLine], without: str) -> str:
    return "".join(f"{line.text}\n" for line in lines if line.tag != without)
