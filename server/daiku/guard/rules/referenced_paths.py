"""Find the paths that a tool call refers to, from its arguments alone; plug-in tools are treated alike."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pydantic import JsonValue

from daiku.domain.tools import ToolCall
from daiku.texts.rules.patterns import lazy

_PATH_KEY = lazy(
    r"(?:^|_)(?:path|paths|file|files|filename|filepath|to|from|uri|uris|dest|destination|target|source|dir|directory|folder)$",
    re.IGNORECASE,
)
_PATCH_KEY = lazy(r"(?:^|_)(?:patch|diff|input|text|content)$", re.IGNORECASE)
_HEADERS = lazy(
    r"^[ \t]*(?:\*\*\* (?:Add|Update|Delete|Move|Rename|Create)[ \w]*?(?:File|to)?: ?|\*\*\* Move to: ?|(?:\+\+\+|---) "
    r"|(?:rename|copy) (?:from|to) )(?P<path>\S.*?)\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_GIT_HEADER = lazy(r"^diff --git (?P<both>.+)$", re.MULTILINE)
KEPT_OUTPUT = "output:"
"""What the name of a whole output begins with that was kept for its session: it is no path."""
_KEPT = lazy(r"output:[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")
_ESCAPE = lazy(r"\\([0-7]{3}|.)")


def string_arguments(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Every string in `value` with the key that it stands under."""
    pending: list[tuple[str, JsonValue]] = [("", value)]
    while pending:
        name, item = pending.pop()
        if isinstance(item, str):
            yield name, item
        elif isinstance(item, list):
            pending.extend((name, each) for each in reversed(item))
        elif isinstance(item, dict):
            pending.extend((inner, each) for inner, each in reversed(item.items()))


def touched_paths(call: ToolCall) -> tuple[str, ...]:
    """Return the paths that `call` names, including those inside a patch."""
    found: dict[str, None] = {}
    for key, text in string_arguments(call.args):
        if _PATH_KEY.search(key):
            found[text] = None
        elif key.lower() in ("patch", "diff") or (_PATCH_KEY.search(key) and call.tool.endswith("patch")):
            found.update(dict.fromkeys(_patch_paths(text)))
    return tuple(found)


def _patch_paths(patch: str) -> Iterator[str]:
    named = [m["path"] for m in _HEADERS.finditer(patch)]
    for m in _GIT_HEADER.finditer(patch):
        named.extend(re.split(r"(?:^|\s)\"?[ab]/", m["both"]))
    for raw in named:
        path = raw.split("\t", 1)[0].strip()
        if path.startswith('"'):
            path = _ESCAPE.sub(_unescape, path.strip('"'))
        if path and path != "/dev/null":
            yield path
            if path[:2] in ("a/", "b/"):
                yield path[2:]


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if code.isdigit() and len(code) == 3 else code


def is_kept_output(path: str) -> bool:
    """Report whether `path` names the stored full output of a command."""
    return _KEPT.fullmatch(path) is not None


def lexical_path(path: str, roots: tuple[str, ...]) -> str | None:
    """Return `path` relative to its root without accessing the disk; None if outside. Links are not followed."""
    if posixpath.isabs(path):
        whole = posixpath.normpath(path)
        for root in roots:
            if whole == root or whole.startswith(root.rstrip("/") + "/"):
                return posixpath.relpath(whole, root)
        return None
    name = posixpath.normpath(path)
    return None if name == ".." or name.startswith(("../", "~")) else name
