"""The jail: which place on disk a path means, refused unless it lies inside a root; and the home folders."""

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
    """The error for a path or a file that may not or cannot be used."""
    return ToolValidationError(Failure(kind="tool", message=message, hint=hint))


def locate(roots: tuple[Path, ...], path: str) -> Path:
    """The real place of `path`, links resolved; it may not exist yet. Raises ToolValidationError
    when it is outside every root, or written so that it may mean another place elsewhere."""
    if not roots:
        raise refuse(text("files.no_folder"), text("files.open_folder_first"))
    plain = _plain(path)
    for part in plain.split("/"):
        _check_part(path, part)
    candidate = Path(plain) if Path(plain).is_absolute() else _under_root(roots, plain)
    real = Path(os.path.realpath(candidate if plain.isascii() else _find_spelling(candidate)))
    if root_of(roots, real) is None:
        raise refuse(text("files.outside", path=path), text("files.only_inside"))
    if real.is_absolute() and any(real == Path(s) or Path(s) in real.parents for s in _SPECIAL):
        raise refuse(text("files.system_path", path=path))
    return real


def _find_spelling(path: Path) -> Path:
    """Return the path with each name as it is on disk, where it is composed of other code points for the same letters."""
    at = Path(path.anchor)
    for name in path.parts[1:]:
        at /= name if os.path.lexists(at / name) else _name_on_disk(at, name)
    return at


def _name_on_disk(folder: Path, name: str) -> str:
    wanted = unicodedata.normalize("NFC", name)
    try:
        found = [each.name for each in folder.iterdir() if unicodedata.normalize("NFC", each.name) == wanted]
    except OSError:
        return name
    return found[0] if len(found) == 1 else name


def root_of(roots: tuple[Path, ...], real: Path) -> Path | None:
    """The innermost root that holds `real`; None when none does."""
    holding = [root for root in roots if root == real or root in real.parents]
    return max(holding, key=lambda root: len(root.parts), default=None)


def relative(roots: tuple[Path, ...], real: Path) -> str:
    """How `real` is named: from its root with `/`, the root's name before it when there are several."""
    root = root_of(roots, real)
    if root is None:
        return real.as_posix()
    inside = real.relative_to(root).as_posix()
    if len(roots) == 1:
        return inside
    return root_name(roots, root) if inside == "." else f"{root_name(roots, root)}/{inside}"


def root_name(roots: tuple[Path, ...], root: Path) -> str:
    """The root's folder name; roots of the same name are numbered in their order."""
    same = [other for other in roots if other.name == root.name]
    number = same.index(root) + 1
    return root.name if number == 1 else f"{root.name}-{number}"


def to_file_path(uri: str) -> str:
    """Return the path of a file URI."""
    from urllib.request import url2pathname  # when used

    return url2pathname(urlsplit(uri).path)


def _plain(path: str) -> str:
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


def _under_root(roots: tuple[Path, ...], plain: str) -> Path:
    if len(roots) == 1:
        return roots[0] / plain
    parts = [part for part in plain.split("/") if part != "."]
    for root in roots:
        if parts and parts[0] == root_name(roots, root):
            return root.joinpath(*parts[1:])
    for root in roots:  # a path without the folder's name is understood when only one root can be meant
        if (root / plain).exists() and sum((other / plain).exists() for other in roots) == 1:
            return root / plain
    names = ", ".join(root_name(roots, root) for root in roots)
    raise refuse(text("files.no_root", path=plain), text("files.begin_with", names=names))


def within(place: Path, folder: Path) -> bool:
    """True where `place` is `folder` or lies in it, by their names."""
    # Asked thousands of times for each command: as texts, `Path.parents` makes a path of every folder above.
    here, above = str(place), str(folder)
    return here == above or here.startswith(above if above.endswith("/") else f"{above}/")


def homes() -> tuple[Path, ...]:
    """The person's home as the environment and as the system know it, real paths, none of them `/`."""
    found = [Path.home()]
    with suppress(KeyError):
        found.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(dict.fromkeys(h for p in found if (h := p.resolve()) != Path("/") and h.is_dir()))
