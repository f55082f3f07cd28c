"""The map of a repository as text within a budget: folders first in a large tree, then files with what they define."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from daiku.tools.rules.code.commonnames import COMMON_NAMES
from daiku.tools.rules.code.repomap import Ranks, SourceFile, Tag
from daiku.tools.rules.code.sidefiles import side_of

Count = Callable[[str], int]
"""How many tokens a text has."""

LARGE = 1000
"""Files from which on the map begins with a table of folders."""
_ROWS = 10
_TOLD = 3
_SHARE_OF_TABLE = 0.1
_SHARE_OF_FILES = 0.75
"""The part of the budget that goes to naming files; what is left goes to signatures."""
_FIRST = 20
"""So many files are named with two definitions, those after them with one."""
_LONG = 110
"""Characters of a signature that are shown."""
_MOST_SIGNATURES = 8
_VALUES = frozenset({"constant", "variable", "field"})


class _Entry(NamedTuple):
    """A file of the map with its definitions, the most important first."""

    path: str
    names: tuple[Tag, ...]
    inline: int = 2
    """How many of them stand beside its name where there is no room for signatures."""


def render_map(
    files: Mapping[str, SourceFile],
    ranks: Ranks,
    known: Collection[str],
    budget: int,
    count: Count,
    total: int,
) -> str:
    """The map in at most `budget` tokens by `count`: the most important files by folder, with the names and
    signatures of what they define. Files of `known` are left out; so are tests and other files beside the code
    that nothing asks for, unless there are no others. `total`: all files of the tree, whatever they are."""
    order = sorted((p for p in files if p not in known), key=lambda path: (-ranks.files[path], path))
    code = [path for path in order if not _is_beside(path) or ranks.files[path] >= 1]
    entries = [_Entry(path, _best(path, files[path], ranks.names[path])) for path in (code or order)]
    head = _table(entries, total, int(budget * _SHARE_OF_TABLE), count) if total > LARGE else ""
    room = budget - count(f"{head}\n") if head else budget
    shown = _named(entries, int(room * _SHARE_OF_FILES), count)
    text = _with_signatures(shown, room, count)
    return f"{head}\n{text}" if head and text else head or text


def _with_signatures(shown: list[_Entry], room: int, count: Count) -> str:
    """The files with as many signatures as there is room for, by the importance of file and definition."""
    signed: dict[str, list[Tag]] = {}
    left = room - count(_drawn(shown, signed))
    for entry, tag in _signatures(shown):
        cost = count(_signature(tag)) + 1
        if entry.path not in signed:  # the names on the file's own line make room
            cost -= count(_line(entry)) - count(f"  {entry.path.rpartition('/')[2]}:")
        if cost <= left:
            left -= cost
            signed.setdefault(entry.path, []).append(tag)
    text = _drawn(shown, signed)
    while count(text) > room and shown:  # lines by themselves may count a little less than together
        last = next(reversed(signed), None)
        if last is None:
            shown = shown[:-1]
        elif len(signed[last]) > 1:
            signed[last].pop()
        else:
            del signed[last]
        text = _drawn(shown, signed)
    return text


def _is_beside(path: str) -> bool:
    return side_of(path) in ("test", "foreign", "generated")


def _best(path: str, file: SourceFile, ranks: Mapping[str, float]) -> tuple[Tag, ...]:
    """The definitions of a file, one a line, the most important first: what the file is called after, then by
    rank, values and common names last."""
    stem = _plain(path.rpartition("/")[2].partition(".")[0])
    lines: dict[int, Tag] = {}
    names: set[str] = set()

    def order(tag: Tag) -> tuple[bool, bool, bool, float, int]:
        is_common = tag.name in COMMON_NAMES
        return is_common, tag.kind in _VALUES, _plain(tag.name) != stem, -ranks[tag.name], tag.line

    for tag in sorted((tag for tag in file.tags if tag.is_definition), key=order):
        if tag.line not in lines and tag.name not in names:
            lines[tag.line] = tag
            names.add(tag.name)
    return tuple(lines.values())


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _named(entries: Sequence[_Entry], room: int, count: Count) -> list[_Entry]:
    """As many of the entries, from the first, as there is room to name."""
    shown: list[_Entry] = []
    folders: set[str] = set()
    for place, each in enumerate(entries):
        entry = each if place < _FIRST else each._replace(inline=1)
        cost = count(_line(entry)) + 1
        if _folder(entry.path) not in folders:
            cost += count(f"{_folder(entry.path)}/\n")
        if cost > room:
            break
        room -= cost
        folders.add(_folder(entry.path))
        shown.append(entry)
    return shown


def _signatures(shown: Sequence[_Entry]) -> list[tuple[_Entry, Tag]]:
    """What may be shown with its signature, the most important first: by its file's place, and by its own there."""
    found: list[tuple[float, int, int]] = []
    for place, entry in enumerate(shown):
        for number, tag in enumerate(entry.names[:_MOST_SIGNATURES]):
            common = 4 if tag.name in COMMON_NAMES or tag.kind in _VALUES else 1
            found.append(((place + 3) * (number + 1) ** 1.5 * common, place, number))
    return [(shown[place], shown[place].names[number]) for _, place, number in sorted(found)]


def _line(entry: _Entry) -> str:
    name = entry.path.rpartition("/")[2]
    told = ", ".join(f"{tag.name} {tag.line}" for tag in entry.names[: entry.inline])
    return f"  {name}: {told}" if told else f"  {name}"


def _signature(tag: Tag) -> str:
    text = tag.signature if len(tag.signature) <= _LONG else f"{tag.signature[:_LONG]}…"
    return f"    {tag.line} {' ' * min(tag.indent, 4)}{text}"


def _drawn(shown: Sequence[_Entry], signed: Mapping[str, Sequence[Tag]]) -> str:
    folders: dict[str, list[_Entry]] = defaultdict(list)
    for entry in shown:
        folders[_folder(entry.path)].append(entry)
    lines: list[str] = []
    for folder, entries in folders.items():
        inner = "  " if folder else ""
        if folder:
            lines.append(f"{folder}/")
        for entry in entries:
            tags = sorted(signed.get(entry.path, ()), key=lambda tag: tag.line)
            if not tags:
                lines.append(inner + _line(entry).strip())
                continue
            lines.append(f"{inner}{entry.path.rpartition('/')[2]}:")
            lines += (_signature(tag) for tag in tags)
    return "\n".join(lines)


def _table(entries: Sequence[_Entry], total: int, room: int, count: Count) -> str:
    """The folders that hold most of the code, each with its files and what they define mostly."""
    code = [entry for entry in entries if not side_of(entry.path)]
    folders = _main_folders([entry.path for entry in code])
    first: dict[str, list[str]] = defaultdict(list)
    for entry in code:
        told = next((tag.name for tag in entry.names if tag.name not in COMMON_NAMES), "")
        folder = _inside(entry.path, folders)
        if told and len(first[folder]) < _TOLD:
            first[folder].append(told)
    lines = [f"{total:,} files. Code by folder (files: what they define mostly):"]
    left = room - count(lines[0])
    for folder, size in folders.items():
        line = f"{folder}/ ({size}: {', '.join(first[folder])})" if first[folder] else f"{folder}/ ({size})"
        left -= count(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join([*lines, ""]) if len(lines) > 1 else ""


def _main_folders(paths: Sequence[str]) -> dict[str, int]:
    """The largest folders with their files, none with more than a fifth of all where it can be divided."""
    folders: dict[str, list[str]] = {"": list(paths)}
    while True:
        widest = max(folders, key=lambda folder: (len(folders[folder]), folder))
        parts: dict[str, list[str]] = defaultdict(list)
        for path in folders[widest]:
            rest = path[len(widest) + 1 :] if widest else path
            inner = rest.partition("/")[0] if "/" in rest else "."
            parts[f"{widest}/{inner}" if widest else inner].append(path)
        if len(folders[widest]) * 5 < len(paths) or widest.endswith("."):
            break
        del folders[widest]
        folders.update(parts)
    sizes = sorted(
        ((folder, len(those)) for folder, those in folders.items()), key=lambda item: (-item[1], item[0])
    )
    return {folder.removesuffix("/."): size for folder, size in sizes[:_ROWS] if folder.strip(".")}


def _inside(path: str, folders: Collection[str]) -> str:
    """The innermost of `folders` that holds `path`; empty where none does."""
    return max((folder for folder in folders if path.startswith(f"{folder}/")), key=len, default="")
