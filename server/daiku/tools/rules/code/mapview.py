"""Format the map of a repository within a token budget: folders first in a large tree, then files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from daiku.tools.rules.code.repomap import COMMON_NAMES, Ranks, SourceFile, Tag, classify_path

Count = Callable[[str], int]
"""Counts the tokens of a text."""

LARGE = 1000
"""Number of files from which the map begins with a table of folders."""
_MAX_ROWS = 10
"""Rows of the table of folders."""
_MAX_NAMES = 3
"""Names per row of the table of folders."""
_TABLE_SHARE = 0.1
"""Share of the budget for the table of folders."""
_FILES_SHARE = 0.75
"""Share of the budget for file names. The rest is for signatures."""
_DETAILED_FILES = 20
"""Files that are listed with two definitions. Later ones have one."""
_MAX_SIGNATURE = 110
"""Characters of a signature that are shown."""
_MAX_SIGNATURES = 8
"""Signatures per file."""
_VALUES = frozenset({"constant", "variable", "field"})
"""Kinds of definitions that are values."""


class _MapEntry(NamedTuple):
    """A file of the map with its definitions, the most important first."""

    path: str
    names: tuple[Tag, ...]
    inline: int = 2
    """Number of definitions after the file's name if there is no room for signatures."""


def render_map(
    files: Mapping[str, SourceFile],
    ranks: Ranks,
    known_paths: Collection[str],
    budget: int,
    count: Count,
    total: int,
) -> str:
    """Format the map in at most `budget` tokens: the most important files by folder, with their definitions.

    Files of `known_paths` are left out. So are tests and other side files that nothing uses, unless there are no
    others. `total`: all files of the tree, of any kind.
    """
    order = sorted((p for p in files if p not in known_paths), key=lambda path: (-ranks.files[path], path))
    code = [path for path in order if not _is_side_file(path) or ranks.files[path] >= 1]
    entries = [
        _MapEntry(path, _sort_definitions(path, files[path], ranks.names[path])) for path in (code or order)
    ]
    head = _format_table(entries, total, int(budget * _TABLE_SHARE), count) if total > LARGE else ""
    room = budget - count(f"{head}\n") if head else budget
    selected = _select_files(entries, int(room * _FILES_SHARE), count)
    text = _add_signatures(selected, room, count)
    return f"{head}\n{text}" if head and text else head or text


def _add_signatures(entries: list[_MapEntry], room: int, count: Count) -> str:
    """Format the files with as many signatures as fit, by the importance of file and definition."""
    tags_by_path: dict[str, list[Tag]] = {}
    remaining = room - count(_format_entries(entries, tags_by_path))
    for entry, tag in _rank_signatures(entries):
        cost = count(_format_signature(tag)) + 1
        if entry.path not in tags_by_path:  # the signatures replace the names on the file's own line
            cost -= count(_format_entry(entry)) - count(f"  {entry.path.rpartition('/')[2]}:")
        if cost <= remaining:
            remaining -= cost
            tags_by_path.setdefault(entry.path, []).append(tag)
    text = _format_entries(entries, tags_by_path)
    while count(text) > room and entries:  # tokens of single lines can add up to less than those of the text
        last_path = next(reversed(tags_by_path), None)
        if last_path is None:
            entries = entries[:-1]
        elif len(tags_by_path[last_path]) > 1:
            tags_by_path[last_path].pop()
        else:
            del tags_by_path[last_path]
        text = _format_entries(entries, tags_by_path)
    return text


def _is_side_file(path: str) -> bool:
    return classify_path(path) in ("test", "foreign", "generated")


def _sort_definitions(path: str, file: SourceFile, ranks: Mapping[str, float]) -> tuple[Tag, ...]:
    """Return a file's definitions, one per line, the most important first.

    The one that the file is named after comes first, then by rank; values and common names come last.
    """
    stem = _normalize(path.rpartition("/")[2].partition(".")[0])
    lines: dict[int, Tag] = {}
    names: set[str] = set()

    def order(tag: Tag) -> tuple[bool, bool, bool, float, int]:
        is_common = tag.name in COMMON_NAMES
        return is_common, tag.kind in _VALUES, _normalize(tag.name) != stem, -ranks[tag.name], tag.line

    for tag in sorted((tag for tag in file.tags if tag.is_definition), key=order):
        if tag.line not in lines and tag.name not in names:
            lines[tag.line] = tag
            names.add(tag.name)
    return tuple(lines.values())


def _normalize(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _find_folder(path: str) -> str:
    return path.rpartition("/")[0]


def _select_files(entries: Sequence[_MapEntry], room: int, count: Count) -> list[_MapEntry]:
    """Return as many of the first entries as there is room to list."""
    selected: list[_MapEntry] = []
    folders: set[str] = set()
    for position, candidate in enumerate(entries):
        entry = candidate if position < _DETAILED_FILES else candidate._replace(inline=1)
        cost = count(_format_entry(entry)) + 1
        if _find_folder(entry.path) not in folders:
            cost += count(f"{_find_folder(entry.path)}/\n")
        if cost > room:
            break
        room -= cost
        folders.add(_find_folder(entry.path))
        selected.append(entry)
    return selected


def _rank_signatures(entries: Sequence[_MapEntry]) -> list[tuple[_MapEntry, Tag]]:
    """Return the definitions to show with signatures, by the position of the file and their own in it."""
    weighted: list[tuple[float, int, int]] = []
    for position, entry in enumerate(entries):
        for number, tag in enumerate(entry.names[:_MAX_SIGNATURES]):
            factor = 4 if tag.name in COMMON_NAMES or tag.kind in _VALUES else 1
            weighted.append(((position + 3) * (number + 1) ** 1.5 * factor, position, number))
    return [(entries[position], entries[position].names[number]) for _, position, number in sorted(weighted)]


def _format_entry(entry: _MapEntry) -> str:
    name = entry.path.rpartition("/")[2]
    definitions = ", ".join(f"{tag.name} {tag.line}" for tag in entry.names[: entry.inline])
    return f"  {name}: {definitions}" if definitions else f"  {name}"


def _format_signature(tag: Tag) -> str:
    text = tag.signature if len(tag.signature) <= _MAX_SIGNATURE else f"{tag.signature[:_MAX_SIGNATURE]}…"
    return f"    {tag.line} {' ' * min(tag.indent, 4)}{text}"


def _format_entries(selected: Sequence[_MapEntry], tags_by_path: Mapping[str, Sequence[Tag]]) -> str:
    folders: dict[str, list[_MapEntry]] = defaultdict(list)
    for entry in selected:
        folders[_find_folder(entry.path)].append(entry)
    lines: list[str] = []
    for folder, entries in folders.items():
        indentation = "  " if folder else ""
        if folder:
            lines.append(f"{folder}/")
        for entry in entries:
            tags = sorted(tags_by_path.get(entry.path, ()), key=lambda tag: tag.line)
            if not tags:
                lines.append(indentation + _format_entry(entry).strip())
                continue
            lines.append(f"{indentation}{entry.path.rpartition('/')[2]}:")
            lines += (_format_signature(tag) for tag in tags)
    return "\n".join(lines)


def _format_table(entries: Sequence[_MapEntry], total: int, room: int, count: Count) -> str:
    """List the folders with most of the code, with their number of files and their main definitions."""
    code = [entry for entry in entries if not classify_path(entry.path)]
    folders = _find_main_folders([entry.path for entry in code])
    names_by_folder: dict[str, list[str]] = defaultdict(list)
    for entry in code:
        main_name = next((tag.name for tag in entry.names if tag.name not in COMMON_NAMES), "")
        folder = _find_main_folder(entry.path, folders)
        if main_name and len(names_by_folder[folder]) < _MAX_NAMES:
            names_by_folder[folder].append(main_name)
    lines = [f"{total:,} files. Code by folder (files: what they define mostly):"]
    remaining = room - count(lines[0])
    for folder, size in folders.items():
        line = (
            f"{folder}/ ({size}: {', '.join(names_by_folder[folder])})"
            if names_by_folder[folder]
            else f"{folder}/ ({size})"
        )
        remaining -= count(line) + 1
        if remaining < 0:
            break
        lines.append(line)
    return "\n".join([*lines, ""]) if len(lines) > 1 else ""


def _find_main_folders(paths: Sequence[str]) -> dict[str, int]:
    """Return the largest folders with sizes; those with over a fifth of all files are divided if possible."""
    folders: dict[str, list[str]] = {"": list(paths)}
    while True:
        largest = max(folders, key=lambda folder: (len(folders[folder]), folder))
        parts: dict[str, list[str]] = defaultdict(list)
        for path in folders[largest]:
            relative_path = path[len(largest) + 1 :] if largest else path
            subfolder = relative_path.partition("/")[0] if "/" in relative_path else "."
            parts[f"{largest}/{subfolder}" if largest else subfolder].append(path)
        if len(folders[largest]) * 5 < len(paths) or largest.endswith("."):
            break
        del folders[largest]
        folders.update(parts)
    sizes = sorted(
        ((folder, len(folder_paths)) for folder, folder_paths in folders.items()),
        key=lambda item: (-item[1], item[0]),
    )
    return {folder.removesuffix("/."): size for folder, size in sizes[:_MAX_ROWS] if folder.strip(".")}


def _find_main_folder(path: str, folders: Collection[str]) -> str:
    """Return the innermost of `folders` that contains `path`; empty if none does."""
    return max((folder for folder in folders if path.startswith(f"{folder}/")), key=len, default="")
