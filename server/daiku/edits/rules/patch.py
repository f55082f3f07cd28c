"""Parser for every supported edit format, and the Patch that the parsed edits make of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daiku.dataclass import dataclass
from daiku.domain.work.patches import FileChange, Patch, SearchReplace
from daiku.edits.rules.blocks import EditBlock, has_blocks, parse_blocks
from daiku.edits.rules.edits import apply_block
from daiku.edits.rules.elisions import fill_text
from daiku.edits.rules.fileblocks import begins_with_file, parse_file_blocks
from daiku.edits.rules.hunks import apply_hunks
from daiku.edits.rules.matching.hunk import Hunk
from daiku.edits.rules.matching.refusal import AS_WANTED, Refusal
from daiku.edits.rules.udiff import FileDiff, FileOp, is_apply_patch, is_udiff, parse_apply_patch, parse_udiff


@dataclass(frozen=True, slots=True)
class WholeFile:
    """The complete new text of one file."""

    path: str
    content: str


Intent = FileDiff | FileOp | EditBlock | WholeFile
"""The request of one part of a patch text."""

_UNREADABLE = "This is no patch that can be read: {}."
_FORMS = (
    "a unified diff (---, +++ and @@ lines), an apply-patch (*** Begin Patch … *** End Patch), "
    "SEARCH/REPLACE blocks, or `File:` blocks"
)


def parse_patch(text: str) -> tuple[Intent, ...] | Refusal:
    """Parse a patch in any known format, or return a Refusal.

    Complete files may come before another format; then it is all of them or none.
    """
    blocks = parse_file_blocks(text)
    has_changes = any(is_change(path, content) for path, content in blocks.files.items())
    if not begins_with_file(text) or not blocks.files or has_changes:
        return _parse_any(text)
    if blocks.unclosed or blocks.doubtful or blocks.outside:
        return Refusal(_UNREADABLE.format("; ".join(blocks.warnings)))
    whole = tuple(WholeFile(path, content) for path, content in blocks.files.items())
    if not any(holds(blocks.rest) for holds in (has_blocks, is_apply_patch, is_udiff)):
        return whole
    further = _parse_any(blocks.rest)
    return further if isinstance(further, Refusal) else (*whole, *further)


def is_change(path: str, content: str) -> bool:
    """Return True if a `File:` block contains a patch of the file instead of its complete text."""
    first = content.lstrip().split("\n", 1)[0]
    if path.endswith((".patch", ".diff")):
        return False
    return has_blocks(first) or is_apply_patch(first) or first.startswith(("diff --git ", "--- "))


def _parse_any(text: str) -> tuple[Intent, ...] | Refusal:
    if is_apply_patch(text):
        return parse_apply_patch(text)
    if has_blocks(text):
        blocks = parse_blocks(text)
        if isinstance(blocks, Refusal):
            return blocks
        nameless = any(not block.path for block in blocks)
        return (
            Refusal("A SEARCH/REPLACE block needs the file's path on the line above it.")
            if nameless
            else blocks
        )
    if is_udiff(text):
        return parse_udiff(text)
    file_blocks = parse_file_blocks(text)
    if file_blocks.files and not (file_blocks.unclosed or file_blocks.doubtful or file_blocks.outside):
        return tuple(WholeFile(path, content) for path, content in file_blocks.files.items())
    return Refusal(_UNREADABLE.format("; ".join(file_blocks.warnings) or f"give {_FORMS}"))


def list_paths(intents: Sequence[Intent]) -> tuple[str, ...]:
    """Return every path that the intents name, in order, without duplicates."""
    names: dict[str, None] = {}
    for intent in intents:
        match intent:
            case FileDiff():
                paths = (intent.old, intent.new)
            case FileOp():
                paths = (intent.path, intent.to)
            case EditBlock() | WholeFile():
                paths = (intent.path,)
        names.update((name, None) for name in paths if name)
    return tuple(names)


def build_patch(
    intents: Sequence[Intent], files: Mapping[str, str | None], *, insisted: bool = False
) -> Patch | Refusal:
    """Build the patch that the intents make of `files`, in order, all or nothing.

    `files` maps paths to texts, None if missing. For `insisted` see `elisions.fill_text`.
    """
    now = dict(files)
    moved: dict[str, str] = {}
    for intent in intents:
        refusal = _carry_out(intent, now, moved, insisted=insisted)
        if refusal is not None:
            return refusal
    changes = [change for path in now if (change := _build_change(path, files, now, moved)) is not None]
    if not changes:
        return Refusal(AS_WANTED, as_wanted=True)
    return Patch(files=tuple(changes))


def _build_change(
    path: str, before: Mapping[str, str | None], after: Mapping[str, str | None], moved: Mapping[str, str]
) -> FileChange | None:
    old, new = before.get(path), after[path]
    if path in moved.values():
        return None
    if (to := moved.get(path)) is not None:
        return FileChange(path=path, kind="rename", old=old, new=after[to], to=to)
    if old == new:
        return None
    if old is None:
        return FileChange(path=path, kind="create", new=new)
    return FileChange(path=path, kind="delete" if new is None else "edit", old=old, new=new)


def _carry_out(
    intent: Intent, now: dict[str, str | None], moved: dict[str, str], *, insisted: bool
) -> Refusal | None:
    match intent:
        case WholeFile(path, content):
            return _store(path, rewrite_text(now.get(path), content, path=path, insisted=insisted), now)
        case EditBlock(path, edit):
            return _store(path, _edit_file(now.get(path), edit, path, insisted=insisted), now)
        case FileOp():
            return _carry_out_op(intent, now, moved, insisted=insisted)
        case FileDiff():
            return _carry_out_diff(intent, now, moved, insisted=insisted)


def rewrite_text(old: str | None, new: str, *, path: str = "", insisted: bool = False) -> str | Refusal:
    """Return a file's new text with elisions filled in, and with CR LF if all old lines have it."""
    if old is None:
        return new
    filled = fill_text(new, old, path=path, insisted=insisted)
    if (
        isinstance(filled, str)
        and "\r" not in filled
        and "\r\n" in old
        and old.count("\n") == old.count("\r\n")
    ):
        return filled.replace("\n", "\r\n")
    return filled


def _edit_file(text: str | None, edit: SearchReplace, path: str, *, insisted: bool) -> str | Refusal:
    if text is None:
        return Refusal("there is no such file.", missing=path) if edit.search else edit.replace
    return apply_block(text, edit.search, edit.replace, path=path, insisted=insisted)


def _store(path: str, result: str | Refusal, now: dict[str, str | None]) -> Refusal | None:
    if isinstance(result, Refusal):
        return None if result.as_wanted else result.within(path)
    now[path] = result
    return None


def _carry_out_op(
    op: FileOp, now: dict[str, str | None], moved: dict[str, str], *, insisted: bool
) -> Refusal | None:
    text = now.get(op.path)
    match op.kind:
        case "add":
            if text is not None:
                return Refusal(f"{op.path}: it cannot be added, there is such a file. Use *** Update File.")
            now[op.path] = op.content
            return None
        case "delete":
            if text is None:
                return Refusal(f"{op.path}: it cannot be deleted, there is no such file.", missing=op.path)
            now[op.path] = None
            return None
        case "update":
            if text is None:
                return Refusal(f"{op.path}: it cannot be updated, there is no such file.", missing=op.path)
            refusal = _store(op.path, _patch_file(text, op.hunks, op.path, insisted=insisted), now)
            return refusal if refusal or op.to is None else _move(op.path, op.to, now, moved)


def _carry_out_diff(
    diff: FileDiff, now: dict[str, str | None], moved: dict[str, str], *, insisted: bool
) -> Refusal | None:
    if diff.old is None:
        path = diff.new or ""
        if now.get(path):
            return Refusal(f"{path}: the diff creates it, but there is such a file.")
        return _store(path, _patch_file("", diff.hunks, path, insisted=insisted), now)
    if diff.new is None:
        return _delete(diff, now)
    path = diff.old
    if not diff.renamed and now.get(path) is None and now.get(diff.new) is not None:
        path = diff.new
    text = now.get(path)
    if text is None:
        return Refusal(f"{path}: there is no such file.", missing=path)
    refusal = _store(path, _patch_file(text, diff.hunks, path, insisted=insisted), now)
    return refusal or (_move(path, diff.new, now, moved) if diff.renamed else None)


def _delete(diff: FileDiff, now: dict[str, str | None]) -> Refusal | None:
    path = diff.old or ""
    text = now.get(path)
    if text is None:
        return Refusal(f"{path}: it cannot be deleted, there is no such file.", missing=path)
    remaining = apply_hunks(text, diff.hunks)
    if isinstance(remaining, Refusal):
        return remaining.within(path)
    if diff.hunks and remaining.strip():
        return Refusal(f"{path}: the diff deletes the file but does not hold all of its lines.")
    now[path] = None
    return None


def _patch_file(text: str, hunks: Sequence[Hunk], path: str, *, insisted: bool) -> str | Refusal:
    new = apply_hunks(text, hunks, path=path, insisted=insisted)
    if isinstance(new, str) and not new.strip() and text.strip():
        return Refusal("the patch would leave the file empty. Delete it if that is meant.")
    return new


def _move(path: str, to: str, now: dict[str, str | None], moved: dict[str, str]) -> Refusal | None:
    if path == to:
        return None
    if now.get(to) is not None:
        return Refusal(f"{path}: it cannot be moved to {to}, there is such a file.")
    now[to], now[path] = now[path], None
    moved[path] = to
    return None
