"""Commands that no grant allows: those that would destroy a home, a system or the workspace itself."""

from __future__ import annotations

import itertools
import posixpath
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from daiku.core.commands.bash import Simple, Word
from daiku.core.commands.inlinecode import removes_unknown
from daiku.core.commands.wrappers import inner, program
from daiku.core.text.patterns import lazy


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command stands: its folder (None: not known), the workspace's roots, the home. `contained`:
    a sandbox keeps it off all files but the workspace's. `narrowed`: it takes a part of a folder only."""

    folder: str | None
    roots: tuple[str, ...]
    home: str
    contained: bool = True
    narrowed: bool = False


_SYSTEM = (
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr", "System", "Library", "Applications",
    "private/etc", "private/var", "Windows", "var/lib", "var/log",
)  # fmt: skip
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/dev/shm")  # noqa: S108  # names to compare with
_HOME = lazy(r"^(?:~|\$HOME\b|\$\{HOME(?::?[-?][^}]*)?\}|\$env:HOME|%USERPROFILE%)", re.IGNORECASE)
_PWD = lazy(r"^(?:~\+(?=/|$)|\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`)")
_OTHER_HOME = lazy(r"^~[\w-]+/?\*?$")
_UNSET = lazy(r"^\$(?:\w+|\{\w+\})/?(?:\*|\.\*|/)*$")
_GLOB_TAIL = lazy(r"(?:/|^)(?:\*|\.\*|\.\[!?\.\]\*|\{[.,*]+\}|\*\*|\?\*|\[[^/\]]*\]\*+|\?+\*+)+$")
_GLOB = lazy(r"[*?\[]")
_KNOWN = lazy(r"^(?:\$(?:HOME|PWD)\b|\$\{(?:HOME|PWD)\}|~\+?(?=/|$))[^$`{}]*$")
"""What a shell computes and we know."""
UNCONTAINED = "what it would remove is computed, and there is no sandbox to keep it off your files"
_DEVICES = lazy(r"^/dev/(?!null$|zero$|stdout$|stderr$|tty|fd/|shm/)")
_STOPS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_WIPES = lazy(
    r"^(?:mkfs(?:\..*)?|mke2fs|mkswap|wipefs|blkdiscard|fdisk|sfdisk|sgdisk|parted|diskutil|format|newfs.*)$"
)
_REMOVERS = frozenset(["rm", "rmdir", "del", "rd", "srm", "shred", "trash", "gio", "unlink", "remove-item"])
_RECURSIVE = lazy(r"^-(?:[a-zA-Z]*[rR][a-zA-Z]*|-r(?:e(?:c(?:u(?:r(?:s(?:i(?:v(?:e)?)?)?)?)?)?)?)?)$")


def why_never(simple: Simple, place: Place) -> str:
    """Why this command is refused whatever was granted, or an empty string."""
    words = simple.words
    name = program(words)
    args = words[1:]
    operands = [w for w in args if not w.text.startswith("-")]
    flags = [w.text for w in args if w.text.startswith("-")]
    recursive = any(_RECURSIVE.match(f) for f in flags)
    reason = "" if place.contained else _removes_what_it_computes(simple)
    if reason:
        return reason
    if name in _REMOVERS:
        reason = _removal(
            operands, flags, place, recursive=recursive or name in ("srm", "rd", "del", "remove-item")
        )
    elif name in ("chmod", "chown", "chgrp", "chattr", "setfacl", "chcon") and recursive:
        reason = _first_bad(operands[1:] or operands, place, why="it would change the rights of {}")
    elif name in ("tar", "bsdtar") and any(len(f) > 5 and "--remove-files".startswith(f) for f in flags):
        reason = _first_bad(operands, place, why="it would remove {}")
    elif name == "mv":
        reason = _first_bad(operands[:-1], place, why="it would move away {}")
    elif name == "find":
        reason = _find(args, place)
    elif name == "git":
        reason = _git(args, place)
    elif name == "rsync" and any(f.startswith("--del") for f in flags):
        reason = _first_bad(operands[-1:], place, why="it would empty {}")
    elif name in _STOPS or (name in ("init", "telinit") and operands and operands[0].text in ("0", "6")):
        reason = "it would stop the machine"
    elif name in ("kill", "killall5") and ("-1" in [w.text for w in args[1:]] or name == "killall5"):
        reason = "it would end every program"
    elif _WIPES.match(name) and operands:
        reason = "it would erase a disk"
    return reason or _devices(name, args)


def _removal(operands: list[Word], flags: list[str], place: Place, *, recursive: bool) -> str:
    if any(len(f) > 5 and "--no-preserve-root".startswith(f) for f in flags):  # "--no-p"
        return "it would remove the whole system"
    for word in operands:
        if device := _DEVICES.match(word.text):
            return f"it would erase {device.string}"
    if recursive or any(_GLOB_TAIL.search(w.text) for w in operands):
        return _first_bad(operands, place, why="it would remove {}")
    return ""


def _removes_what_it_computes(simple: Simple) -> str:
    """For code of other programs, and for what xargs reads."""
    words = simple.words
    if not words:
        return ""
    if removes_unknown(words):
        return UNCONTAINED
    if program(words) in ("xargs", "parallel"):
        return UNCONTAINED if any(program(c.words) in _REMOVERS for c in inner(simple)[0]) else ""
    if program(words).startswith(("$", "`")) and any(_RECURSIVE.match(w.text) for w in words[1:]):
        return UNCONTAINED
    return ""


def _first_bad(words: list[Word], place: Place, *, why: str) -> str:
    for word in words:
        if what := precious(word.text, place):
            return why.format(what)
        if not place.contained and not word.plain and not _KNOWN.match(word.text):
            return UNCONTAINED
    return ""


def precious(text: str, place: Place) -> str:
    """What of value `text` names: the system, a home, the workspace or a folder around it."""
    if _OTHER_HOME.match(text) and not text.startswith("~/"):
        return "a home folder"
    if _UNSET.match(text) and not (_HOME.match(text) or _PWD.match(text)) and "/" in text:
        return f"everything, if {text.partition('/')[0]} is empty"
    here = _PWD.match(text) is not None  # first: `~+` is the folder, not the home
    path = (
        _PWD.sub(place.folder or "/", text)
        if here
        else _HOME.sub((place.home or "/home/somebody").replace("\\", "/"), text)
    )
    if not path.startswith("/"):
        if place.folder is None:
            return "files in a folder that is not known" if _GLOB_TAIL.search(path) or ".." in path else ""
        path = f"{place.folder}/{path}"
    path = _GLOB_TAIL.sub("", path) or "/"
    path = "/" + posixpath.normpath(path).lstrip("/")
    return _named(path, place) or (_may_match(path, place) if _GLOB.search(path) else "")


def _may_match(pattern: str, place: Place) -> str:
    """What of value a shell's pattern may come to name."""
    home = place.home.rstrip("/") or "/home/somebody"
    wanted = pattern.strip("/").split("/")
    for path in [home, *place.roots, *(f"/{name}" for name in _SYSTEM)]:
        parts = path.strip("/").split("/")
        # A folder around it is as bad: the first parts match and the pattern ends.
        if len(wanted) <= len(parts) and all(map(fnmatchcase, parts, wanted)):
            return _named("/" + "/".join(parts[: len(wanted)]), place)
    return ""


def _named(path: str, place: Place) -> str:
    home = place.home.rstrip("/") or "/home/somebody"
    for root in place.roots:
        bare = root.rstrip("/")
        if path == bare:
            return "" if place.narrowed else "the whole workspace"
        if bare.startswith(path.rstrip("/") + "/"):
            return f"{path}, which holds the workspace"
    if path == home or home.startswith(path.rstrip("/") + "/"):
        return "your home folder"
    if any(path == t or path.startswith(t + "/") for t in _TEMPORARY):
        return ""
    parts = path.strip("/").split("/")
    if len(parts) == 1:
        return path
    if parts[0] in ("home", "Users") and len(parts) == 2:  # /home/name
        return "a home folder"
    within_workspace = any(path.startswith(root.rstrip("/") + "/") for root in place.roots)
    if not within_workspace and any(path == f"/{s}" or path.startswith(f"/{s}/") for s in _SYSTEM):
        return path
    return ""


def _find(args: tuple[Word, ...], place: Place) -> str:
    starts: list[Word] = []
    for word in args:
        if word.text.startswith(("-", "(", "!")):
            break
        starts.append(word)
    texts = [w.text for w in args]
    removes = "-delete" in texts or any(t.rsplit("/", 1)[-1] in ("rm", "shred", "unlink") for t in texts)
    filters = ("-name", "-iname", "-path", "-ipath", "-regex", "-newer", "-mtime", "-empty", "-size")
    place = replace(place, narrowed=any(t in filters for t in texts))
    if not removes:
        return ""
    for word in starts or [Word(".")]:
        if not place.contained and not word.plain and not _KNOWN.match(word.text):
            return UNCONTAINED
        what = precious(word.text, place)
        if what:
            return f"it would remove {what}"
    return ""


def _git(args: tuple[Word, ...], place: Place) -> str:
    texts = [w.text for w in args]
    if "clean" not in texts:
        return ""
    folder = place.folder
    for flag, value in itertools.pairwise(texts):
        if flag in ("-C", "--work-tree"):
            folder = value
    forced = any(t.startswith("-") and ("f" in t or "d" in t) for t in texts[texts.index("clean") :])
    home = place.home.rstrip("/")
    if folder is None or not forced:
        return ""
    whole = posixpath.normpath(
        posixpath.join(place.folder or "/", _HOME.sub(home or "/home/somebody", folder))
    )
    if whole == "/" or (home and (whole == home or home.startswith(whole + "/"))):
        return "it would remove every untracked file of your home folder"
    return ""


def _devices(name: str, args: tuple[Word, ...]) -> str:
    if name == "dd":
        targets = [w.text.removeprefix("of=") for w in args if w.text.startswith("of=")]
    elif name in ("cp", "tee", "shred", "cat", "wipe", "badblocks", "truncate"):
        targets = (
            [w.text for w in args if not w.text.startswith("-")]
            if name != "cp"
            else [w.text for w in args[-1:]]
        )
        targets = [] if name == "cat" else targets
    else:
        return ""
    bad = next((t for t in targets if _DEVICES.match(t)), "")
    return f"it would overwrite {bad}" if bad else ""


def why_never_write(target: str) -> str:
    """Why nothing may be redirected to `target`, or an empty string."""
    return f"it would overwrite {target}" if _DEVICES.match(target) else ""


def moved(simple: Simple, place: Place) -> Place:
    """Where the next command stands after this one."""
    if program(simple.words) not in ("cd", "pushd", "chdir", "popd"):
        return place
    operands = [w for w in simple.words[1:] if not w.text.startswith("-")]
    if not operands:
        return replace(place, folder=place.home or None)
    text = _HOME.sub(place.home or "/home/somebody", operands[0].text)
    if not operands[0].plain and "$" in text:
        return replace(place, folder=None)
    folder = posixpath.normpath(posixpath.join(place.folder or "/", text))
    return replace(place, folder=folder if place.folder or text.startswith("/") else None)
