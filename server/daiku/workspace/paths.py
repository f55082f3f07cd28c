"""Path resolution: the real place of a path, refused if it is outside every root; and the home folders."""

from __future__ import annotations

import os
import pwd
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from daiku.domain.errors import Failure, ToolValidationError
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

_SPECIAL = ("/proc", "/sys", "/dev")
_STREAM = lazy(r"::|:[^/]*\$")
_GUARDED = (".git", ".daiku", ".vscode", ".github")
new_workspaces: set[Path] = set()
"""Roots of workspaces opened since the last program lookup, which excludes them from then on."""


def refuse(message: Text, hint: Text = NO_TEXT) -> ToolValidationError:
    """Return the error for a path or file that cannot or must not be used."""
    return ToolValidationError(Failure(kind="tool", message=message, hint=hint))


def locate(roots: tuple[Path, ...], path: str) -> Path:
    """Return the real path of `path`, which may not exist yet.

    Raises ToolValidationError if it is outside every root, or could mean another place on another system.
    """
    if not roots:
        raise refuse(text("files.no_folder"), text("files.open_folder_first"))
    plain = _check_spelling(path)
    for part in plain.split("/"):
        _check_part(path, part)
    candidate = Path(plain) if Path(plain).is_absolute() else _resolve_under_root(roots, plain)
    real = Path(os.path.realpath(candidate if plain.isascii() else _find_spelling(candidate)))
    if find_root(roots, real) is None:
        raise refuse(text("files.outside", path=path), text("files.only_inside"))
    if real.is_absolute() and any(real == Path(s) or Path(s) in real.parents for s in _SPECIAL):
        raise refuse(text("files.system_path", path=path))
    return real


def _find_spelling(path: Path) -> Path:
    """Return the path with each name spelled as on disk, if only its Unicode normalization differs."""
    at = Path(path.anchor)
    for name in path.parts[1:]:
        at /= name if os.path.lexists(at / name) else _find_name_on_disk(at, name)
    return at


def _find_name_on_disk(folder: Path, name: str) -> str:
    normalized = unicodedata.normalize("NFC", name)
    try:
        matches = [e.name for e in folder.iterdir() if unicodedata.normalize("NFC", e.name) == normalized]
    except OSError:
        return name
    return matches[0] if len(matches) == 1 else name


def find_root(roots: tuple[Path, ...], real: Path) -> Path | None:
    """Return the innermost root that contains `real`; None if there is none."""
    containing = [root for root in roots if root == real or root in real.parents]
    return max(containing, key=lambda root: len(root.parts), default=None)


def relative(roots: tuple[Path, ...], real: Path) -> str:
    """Return `real` relative to its root, with `/`, after the root's name if there are several."""
    root = find_root(roots, real)
    if root is None:
        return real.as_posix()
    inside = real.relative_to(root).as_posix()
    if len(roots) == 1:
        return inside
    return get_root_name(roots, root) if inside == "." else f"{get_root_name(roots, root)}/{inside}"


def get_root_name(roots: tuple[Path, ...], root: Path) -> str:
    """Return the root's folder name, numbered if several roots share it."""
    same = [other for other in roots if other.name == root.name]
    number = same.index(root) + 1
    return root.name if number == 1 else f"{root.name}-{number}"


def to_file_path(uri: str) -> str:
    """Return the path of a file URI."""
    from urllib.request import url2pathname  # when used

    return url2pathname(urlsplit(uri).path)


def _check_spelling(path: str) -> str:
    if not path.strip():
        raise refuse(text("files.empty_path"))
    if len(path) > 4096:
        raise refuse(text("files.long_path"))
    if path.startswith("file:"):
        path = to_file_path(path)
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        raise refuse(text("files.address", path=path))
    if os.sep == "/":
        path = path.replace("\\", "/")
    if path.startswith("~"):
        raise refuse(text("files.home_folder", path=path), text("files.relative_path"))
    decoded = unquote(path)
    if decoded != path and (".." in decoded.split("/") or decoded.count("/") != path.count("/")):
        raise refuse(text("files.percent_signs", path=path))
    return path


def _check_part(path: str, part: str) -> None:
    if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in part):
        raise refuse(text("files.invisible", path=repr(path)))
    if part in ("", ".", ".."):
        return
    folded = unicodedata.normalize("NFKC", part)
    if part != part.rstrip(". ") or _STREAM.search(part):
        raise refuse(text("files.dropped_end", path=repr(path)))
    if folded != part and (
        folded in (".", "..") or set(folded) & set("/\\") or folded.casefold().startswith(_GUARDED)
    ):
        raise refuse(text("files.other_name", path=repr(path)))


def _resolve_under_root(roots: tuple[Path, ...], plain: str) -> Path:
    if len(roots) == 1:
        return roots[0] / plain
    parts = [part for part in plain.split("/") if part != "."]
    for root in roots:
        if parts and parts[0] == get_root_name(roots, root):
            return root.joinpath(*parts[1:])
    for root in roots:  # without the folder's name, if only one root has the path
        if (root / plain).exists() and sum((other / plain).exists() for other in roots) == 1:
            return root / plain
    names = ", ".join(get_root_name(roots, root) for root in roots)
    raise refuse(text("files.no_root", path=plain), text("files.begin_with", names=names))


def is_within(place: Path, folder: Path) -> bool:
    """Return True if `place` is `folder` or lies in it, by name only."""
    # Called thousands of times per command: comparing strings is faster than `Path.parents`.
    path, parent = str(place), str(folder)
    return path == parent or path.startswith(parent if parent.endswith("/") else f"{parent}/")


def find_homes() -> tuple[Path, ...]:
    """Return the user's home folders per environment and system, as real paths, without `/`."""
    candidates = [Path.home()]
    with suppress(KeyError):
        candidates.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(dict.fromkeys(h for p in candidates if (h := p.resolve()) != Path("/") and h.is_dir()))
