"""Settings of git that no repository changes: one table for Daiku's own git and for the git that commands run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.rules import find_git_subcommand
from daiku.guard.rules.commands.wrappers import program_name
from daiku.texts.rules.patterns import lazy
from daiku.tools.shell.capture import wait_for_program
from daiku.workspace.programs import find_program
from daiku.workspace.repository import REACHES_NOTHING

Settings = tuple[tuple[str, str], ...]
_EVERYWHERE: Settings = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", "true"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("credential.helper", ""),
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
)
NO_HOOKS: Settings = (("core.hooksPath", "/dev/null"),)
SIZE_AND_TIME: Settings = (("core.checkStat", "minimal"), ("core.trustctime", "false"))
"""By these alone git takes a file for unchanged: inodes are others where the sandbox covers a file."""
FOR_COMMANDS: Settings = (
    *_EVERYWHERE,
    ("core.sshCommand", "ssh"),
    ("interactive.diffFilter", ""),
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("gpg.x509.program", "gpgsm"),
)
"""What no repository may say about the git that a command runs in it."""
FOR_TOOLS: Settings = (
    *_EVERYWHERE,
    *NO_HOOKS,
    ("core.editor", "true"),
    ("core.quotePath", "false"),
    ("core.sshCommand", "false"),
    ("core.attributesFile", "/dev/null"),
    ("diff.external", ""),
    ("diff.relative", "false"),
    ("log.showSignature", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("diff.submodule", "short"),
    ("protocol.allow", "never"),
    ("fetch.recurseSubmodules", "false"),
    ("color.ui", "false"),
)
"""The same for the git of Daiku's own tools, which needs no program but itself."""
_PROGRAMS = (
    r"^diff\.external$|^(filter|diff|merge)\..*\.(clean|smudge|process|textconv|command|driver)$|^alias\.|^remote\..*\.(uploadpack|receivepack|vcs)$"
    r"|^submodule\..*\.update$|^(difftool|mergetool)\..*\.cmd$"
)
_WHO = r"^user\.(name|email)$"
LISTED = ("config", "--null", "--show-scope", "--get-regexp", f"{_PROGRAMS}|{_WHO}")
"""The arguments with which git lists what `parse_settings` reads."""
_LARGE_FILES = re.compile(r"git-lfs (?:clean -- %f|smudge(?: --skip)? -- %f|filter-process(?: --skip)?)")
"""What git's extension for large files puts into a repository's settings itself."""
_SECONDS = 10


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """What a repository and its person have set. `off` takes away the programs that the repository's own
    settings name, `large_files` those of git's extension for large files; `who` is the name and the
    address that the person commits with, where the repository does not say another."""

    off: Settings = ()
    large_files: Settings = ()
    who: Settings = ()


def git_settings(settings: Settings) -> dict[str, str]:
    """`settings` as variables that git reads, stronger than those of any file. As options (`-c NAME=VALUE`)
    they would not do: a name that a repository chose may hold a `=`."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (name, value) in enumerate(settings):
        found[f"GIT_CONFIG_KEY_{at}"] = name
        found[f"GIT_CONFIG_VALUE_{at}"] = value
    return found


def parse_settings(said: str) -> RepositorySettings:
    """Parse the output of `git config` for the arguments LISTED."""
    fields = said.split("\0")
    off: dict[str, str] = {}
    large_files: dict[str, str] = {}
    who: dict[str, str] = {}
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = setting.partition("\n")
        own = scope in ("local", "worktree")
        if name in ("user.name", "user.email"):
            who.pop(name, None)
            if not own:
                who[name] = value
        elif own:
            (large_files if _LARGE_FILES.fullmatch(value) else off).update(_without(name))
    return RepositorySettings(tuple(off.items()), tuple(large_files.items()), tuple(who.items()))


def _without(name: str) -> dict[str, str]:
    """Settings that take the program away which the setting `name` names."""
    # An empty text converter is an error to git, one that converts nothing is not.
    harmless = {"submodule": "checkout", "textconv": "cat"}
    parts = name.split(".")
    found = {name: harmless.get(parts[0]) or harmless.get(parts[-1], "")}
    if name.endswith(("uploadpack", "receivepack")):  # of these git takes the first, and it is there
        found["protocol.file.allow"] = "never"
    if name.startswith("filter."):
        found[f"{name.rpartition('.')[0]}.required"] = "false"
    return found


_known: dict[Path, tuple[tuple[int, ...], RepositorySettings]] = {}


def effective_settings(
    root: Path, folder: Path | None, environ: Mapping[str, str]
) -> RepositorySettings | None:
    """Return the git settings in effect at `root`, with the git folder `folder` (None: there is none); None
    if git fails. `environ` is the environment that git runs in."""
    home = Path(environ.get("HOME") or "/")
    settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    files = [folder / name for name in ("config", "config.worktree")] if folder else []
    stamps = tuple(_stamp(file) for file in (*files, home / ".gitconfig", settings))
    known = _known.get(folder or root)
    if known is not None and known[0] == stamps:
        return known[1]
    git = find_program("git", (root,))
    said = _said([git, *LISTED], root, environ) if git else ""
    if said is None:
        return None
    found = parse_settings(said)
    _known[folder or root] = (stamps, found)
    return found


_LISTS_NAMES = frozenset({"ls-tree", "rev-parse", "show"})
"""Sub-commands of git that print no more of a tree than its names."""
_REVISION_PATH = lazy(r"(?::(?![!^(/])(?:[0-3]:)?|(?:[^:{]|\{[^}]*\})+:)(?P<path>.+)", re.DOTALL)


def find_hidden_object(
    command: str, folder: Path, top: Path, environ: Mapping[str, str], is_closed: Callable[[Path], bool]
) -> str:
    """Return the word of a git command that names a closed file in a revision, or a content without its path.

    Whether such a content is secret or closed cannot be told. Empty if there is none."""
    pieces: list[tuple[str, str]] = []
    for simple in read_script(command).commands:
        if program_name(simple.words) != "git":
            continue
        sub, rest = find_git_subcommand(simple.words)
        for word in rest:
            for piece in dict.fromkeys((word, *re.split(r"\.{2,3}", word.lstrip("^")))):  # a range has two
                found = _REVISION_PATH.fullmatch(piece)
                if found and _is_closed_path(found["path"], folder, top, is_closed):
                    return piece
                if piece.isprintable() and not piece.startswith("-"):
                    pieces.append((sub, piece))
    git = find_program("git", (folder,)) if pieces else ""
    if not git:
        return ""
    named = "".join(f"{piece}\n" for _, piece in pieces)
    kinds = _said([git, "cat-file", "--batch-check=%(objecttype)"], folder, environ, named) or ""
    for (sub, piece), kind in zip(pieces, kinds.splitlines(), strict=False):
        if (kind == "blob" and ":" not in piece) or (kind == "tree" and sub not in _LISTS_NAMES):
            return piece
    return ""


def _is_closed_path(path: str, folder: Path, top: Path, is_closed: Callable[[Path], bool]) -> bool:
    base = folder if path.startswith(("./", "../")) else top
    return is_closed(Path(os.path.normpath(base / path)))


def _said(argv: list[str], root: Path, environ: Mapping[str, str], stdin: str = "") -> str | None:
    try:
        return wait_for_program(argv, root, {**environ, **REACHES_NOTHING}, stdin, seconds=_SECONDS)[1]
    except OSError:
        return None


def _stamp(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError:
        return 0
