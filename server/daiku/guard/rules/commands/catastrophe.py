"""Commands that no grant allows: those that would destroy a home, a system or the workspace itself."""

from __future__ import annotations

import itertools
import posixpath
import re
from fnmatch import fnmatchcase

from daiku.dataclass import dataclass, replace
from daiku.guard.rules.commands.bash import SimpleCommand, Word
from daiku.guard.rules.commands.inlinecode import removes_folders
from daiku.guard.rules.commands.wrappers import inner_commands, program_name
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text


@dataclass(frozen=True, slots=True)
class CommandScope:
    """Where a command stands: its folder (None: not known), the workspace's roots, the home.

    `contained`: a sandbox keeps it off all files but the workspace's. `narrowed`: it takes a part of a folder only.
    """

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
UNCONTAINED = text("commands.uncontained")
_DEVICES = lazy(r"^/dev/(?!null$|zero$|stdout$|stderr$|tty|fd/|shm/)")
_OVERWRITERS = frozenset({"tee", "shred", "wipe", "badblocks", "truncate"})
_STOPS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_WIPES = lazy(
    r"^(?:mkfs(?:\..*)?|mke2fs|mkswap|wipefs|blkdiscard|fdisk|sfdisk|sgdisk|parted|diskutil|format|newfs.*)$"
)
_REMOVERS = frozenset(["rm", "rmdir", "del", "rd", "srm", "shred", "trash", "gio", "unlink", "remove-item"])
_RECURSIVE = lazy(r"^-(?:[a-zA-Z]*[rR][a-zA-Z]*|-r(?:e(?:c(?:u(?:r(?:s(?:i(?:v(?:e)?)?)?)?)?)?)?)?)$")


def why_never_allowed(simple: SimpleCommand, place: CommandScope) -> Text:
    """Why this command is refused whatever was granted, or an empty string."""
    words = simple.words
    name = program_name(words)
    args = words[1:]
    operands = [w for w in args if not w.text.startswith("-")]
    flags = [w.text for w in args if w.text.startswith("-")]
    recursive = any(_RECURSIVE.match(f) for f in flags)
    if not place.contained and _removes_what_it_computes(simple):
        return UNCONTAINED
    reason = NO_TEXT
    if name in _REMOVERS:
        reason = _removal(
            operands, flags, place, recursive=recursive or name in ("srm", "rd", "del", "remove-item")
        )
    elif name in ("chmod", "chown", "chgrp", "chattr", "setfacl", "chcon") and recursive:
        reason = _first_bad(operands[1:] or operands, place, "commands.would_change_rights")
    elif name in ("tar", "bsdtar") and any(len(f) > 5 and "--remove-files".startswith(f) for f in flags):
        reason = _first_bad(operands, place, "commands.would_remove")
    elif name == "mv":
        reason = _first_bad(operands[:-1], place, "commands.would_move")
    elif name == "find":
        reason = _find(args, place)
    elif name == "git":
        reason = _git(args, place)
    elif name == "rsync" and any(f.startswith("--del") for f in flags):
        reason = _first_bad(operands[-1:], place, "commands.would_empty")
    elif name in _STOPS or (name in ("init", "telinit") and operands and operands[0].text in ("0", "6")):
        reason = text("commands.stops_machine")
    elif name in ("kill", "killall5") and ("-1" in [w.text for w in args[1:]] or name == "killall5"):
        reason = text("commands.ends_programs")
    elif _WIPES.match(name) and operands:
        reason = text("commands.erases_disk")
    return reason or _devices(name, args)


def _removal(operands: list[Word], flags: list[str], place: CommandScope, *, recursive: bool) -> Text:
    if any(len(f) > 5 and "--no-preserve-root".startswith(f) for f in flags):  # "--no-p"
        return text("commands.removes_system")
    for word in operands:
        if device := _DEVICES.match(word.text):
            return text("commands.would_erase", what=device.string)
    if recursive or any(_GLOB_TAIL.search(w.text) for w in operands):
        return _first_bad(operands, place, "commands.would_remove")
    return NO_TEXT


def _removes_what_it_computes(simple: SimpleCommand) -> bool:
    """Return True if code of another program removes folders, or a remover gets its operands from a pipe or variable."""
    words = simple.words
    if not words or removes_folders(words):
        return bool(words)
    if program_name(words) in ("xargs", "parallel"):
        return any(program_name(command.words) in _REMOVERS for command in inner_commands(simple)[0])
    return program_name(words).startswith(("$", "`")) and any(_RECURSIVE.match(w.text) for w in words[1:])


def _first_bad(words: list[Word], place: CommandScope, key: str) -> Text:
    for word in words:
        if what := valued_target(word.text, place):
            return text(key, what=what)
        if not place.contained and not word.plain and not _KNOWN.match(word.text):
            return UNCONTAINED
    return NO_TEXT


def valued_target(word: str, place: CommandScope) -> Text:
    """Return which valuable place `word` names: the system, a home, the workspace or a parent of it."""
    if _OTHER_HOME.match(word) and not word.startswith("~/"):
        return text("commands.a_home")
    if _UNSET.match(word) and not (_HOME.match(word) or _PWD.match(word)) and "/" in word:
        return text("commands.everything_if_empty", name=word.partition("/")[0])
    here = _PWD.match(word) is not None  # first: `~+` is the folder, not the home
    path = (
        _PWD.sub(place.folder or "/", word)
        if here
        else _HOME.sub((place.home or "/home/somebody").replace("\\", "/"), word)
    )
    if not path.startswith("/"):
        if place.folder is None:
            return text("commands.unknown_folder") if _GLOB_TAIL.search(path) or ".." in path else NO_TEXT
        path = f"{place.folder}/{path}"
    path = _GLOB_TAIL.sub("", path) or "/"
    path = "/" + posixpath.normpath(path).lstrip("/")
    return _named(path, place) or (_may_match(path, place) if _GLOB.search(path) else NO_TEXT)


def _may_match(pattern: str, place: CommandScope) -> Text:
    """Return why the shell pattern could match something valuable, empty if it cannot."""
    home = place.home.rstrip("/") or "/home/somebody"
    wanted = pattern.strip("/").split("/")
    for path in [home, *place.roots, *(f"/{name}" for name in _SYSTEM)]:
        parts = path.strip("/").split("/")
        # A folder around it is as bad: the first parts match and the pattern ends.
        if len(wanted) <= len(parts) and all(map(fnmatchcase, parts, wanted)):
            return _named("/" + "/".join(parts[: len(wanted)]), place)
    return NO_TEXT


def _named(path: str, place: CommandScope) -> Text:
    home = place.home.rstrip("/") or "/home/somebody"
    for root in place.roots:
        bare = root.rstrip("/")
        if path == bare:
            return NO_TEXT if place.narrowed else text("commands.whole_workspace")
        if bare.startswith(path.rstrip("/") + "/"):
            return text("commands.holds_workspace", path=path)
    if path == home or home.startswith(path.rstrip("/") + "/"):
        return text("commands.your_home")
    if any(path == t or path.startswith(t + "/") for t in _TEMPORARY):
        return NO_TEXT
    parts = path.strip("/").split("/")
    if len(parts) == 1:
        return Text(path)
    if parts[0] in ("home", "Users") and len(parts) == 2:  # /home/name
        return text("commands.a_home")
    within_workspace = any(path.startswith(root.rstrip("/") + "/") for root in place.roots)
    if not within_workspace and any(path == f"/{s}" or path.startswith(f"/{s}/") for s in _SYSTEM):
        return Text(path)
    return NO_TEXT


def _find(args: tuple[Word, ...], place: CommandScope) -> Text:
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
        return NO_TEXT
    return _first_bad(starts or [Word(".")], place, "commands.would_remove")


def _git(args: tuple[Word, ...], place: CommandScope) -> Text:
    texts = [w.text for w in args]
    if "clean" not in texts:
        return NO_TEXT
    folder = place.folder
    for flag, value in itertools.pairwise(texts):
        if flag in ("-C", "--work-tree"):
            folder = value
    forced = any(t.startswith("-") and ("f" in t or "d" in t) for t in texts[texts.index("clean") :])
    home = place.home.rstrip("/")
    if folder is None or not forced:
        return NO_TEXT
    whole = posixpath.normpath(
        posixpath.join(place.folder or "/", _HOME.sub(home or "/home/somebody", folder))
    )
    if whole == "/" or (home and (whole == home or home.startswith(whole + "/"))):
        return text("commands.untracked_home")
    return NO_TEXT


def _devices(name: str, args: tuple[Word, ...]) -> Text:
    if name == "dd":
        targets = [w.text.removeprefix("of=") for w in args if w.text.startswith("of=")]
    elif name == "cp":
        targets = [w.text for w in args[-1:]]
    else:
        targets = [w.text for w in args if name in _OVERWRITERS]
    return next((why for target in targets if (why := why_redirect_denied(target))), NO_TEXT)


def why_redirect_denied(target: str) -> Text:
    """Why nothing may be redirected to `target`, or an empty string."""
    return text("commands.would_overwrite", what=target) if _DEVICES.match(target) else NO_TEXT


def scope_after(simple: SimpleCommand, place: CommandScope) -> CommandScope:
    """Return the working folder after the command `simple`, which may change it (`cd`, `pushd`)."""
    if program_name(simple.words) not in ("cd", "pushd", "chdir", "popd"):
        return place
    operands = [w for w in simple.words[1:] if not w.text.startswith("-")]
    if not operands:
        return replace(place, folder=place.home or None)
    text = _HOME.sub(place.home or "/home/somebody", operands[0].text)
    if not operands[0].plain and "$" in text:
        return replace(place, folder=None)
    folder = posixpath.normpath(posixpath.join(place.folder or "/", text))
    return replace(place, folder=folder if place.folder or text.startswith("/") else None)
