"""Classify files in a git folder: git's own records, and those that make git run or read something."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from daiku.guard.rules.protected.names import PUBLIC_FILES, SECRET_FILES, SECRET_FOLDERS, SOURCE_FILES

FREE_FOLDERS = frozenset({"objects", "refs", "logs", "rr-cache", "lfs", "reftable"})
"""Folders that git fills by itself; in `objects` the list of other repositories is none of them."""
STATE_FOLDERS = frozenset({"rebase-merge", "rebase-apply", "sequencer"})
ALTERNATES = ("objects/info/alternates", "objects/info/http-alternates")
_FREE_FILES = re.compile(
    r"(?:ORIG_|FETCH_|MERGE_|CHERRY_PICK_|REVERT_|REBASE_)?HEAD|MERGE_(?:MODE|MSG|RR|AUTOSTASH)|AUTO_MERGE|SQUASH_MSG"
    r"|(?:COMMIT|TAG|NOTES)_EDITMSG|(?:BRANCH_|EDIT_)DESCRIPTION|BISECT_\w+|index(?:\.\w+)?|sharedindex\.\w+|packed-refs"
    r"|shallow|description|gc\.(?:log|pid)|[\w-]+\.lock"
)
_TODO = re.compile(rb"^\s*(?:exec|x)\s", re.MULTILINE)


def free_file(name: str) -> bool:
    """Report whether the file `name` directly in a git folder only holds git's own records."""
    return _FREE_FILES.fullmatch(name) is not None and name not in ("config.lock", "config.worktree.lock")


def runs_commands(folder: Path) -> bool:
    """Report whether the rebase state in `folder` holds commands that git runs when the rebase continues."""
    for name in ("git-rebase-todo", "todo"):
        try:
            if _TODO.search((folder / name).read_bytes()):
                return True
        except OSError:
            continue
    return False


_SECTION = re.compile(r'\[\s*(?P<section>[\w.-]+)(?:\s+"(?P<name>(?:[^"\\]|\\.)*)")?\s*\]\s*(?P<rest>.*)')
_SPECIAL = re.compile(r"[*?\[\]\\]")
_SETTING = re.compile(r"(?P<key>[A-Za-z][\w-]*)\s*(?:=\s*(?P<value>.*))?")
_HARMLESS = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
             "autocrlf", "eol", "safecrlf"},
    "remote": {"url", "pushurl", "fetch", "tagopt", "prune"},
    "branch": {"remote", "merge", "rebase", "description"},
    "user": {"name", "email"},
    "extensions": {"objectformat", "refstorage"},
    "submodule": {"url", "active"},
    "pull": {"rebase", "ff"},
    "init": {"defaultbranch"},
}  # fmt: skip


def harmless_settings(text: str) -> bool:
    """Report whether no line of a repository's `config` makes git run or read anything."""
    known: set[str] = set()
    for raw in text.splitlines():
        line = raw.strip()
        if found := _SECTION.fullmatch(line):
            known = _HARMLESS.get(found["section"].lower(), set())
            line = found["rest"]
            if not known:
                return False
        if not line or line[0] in "#;":
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None or setting["key"].lower() not in known or line.endswith("\\"):
            return False
        value = (setting["value"] or "").strip('" ')
        if setting["key"].lower().endswith("url") and ("::" in value or value.startswith("-")):
            return False
        if setting["key"].lower() == "bare" and value.lower() != "false":
            return False
    return True


def harmless(place: Path) -> bool:
    """Report whether a new or changed `place` in a git folder is what `git init` or `git clone` creates."""
    if place.is_symlink():
        return False
    if place.is_dir():
        return False
    if place.parent.name == "hooks":
        return place.name.endswith(".sample")
    if place.name == "exclude" and place.parent.name == "info":
        return True
    try:
        return place.name == "config" and harmless_settings(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def secret_attributes(closed: Iterable[Path] = ()) -> str:
    """Return git attributes that make files of secrets and the `closed` places binary: nothing of them is printed."""
    lines = [f"{_any_case(pattern)} -diff" for pattern in SECRET_FILES]
    lines += [f"{_any_case(pattern)} !diff" for pattern in (*SOURCE_FILES, *PUBLIC_FILES)]
    lines += [f"**/{_any_case(folder)}/** -diff" for folder in sorted(SECRET_FOLDERS)]
    for place in closed:
        name = _SPECIAL.sub(r"\\\g<0>", place.as_posix()).replace("\\", r"\\").replace('"', r"\"")
        if "\n" not in name:
            lines += [f'"**/{name}" -diff', f'"**/{name}/**" -diff']
    return "\n".join(lines) + "\n"


def _any_case(pattern: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in pattern)
