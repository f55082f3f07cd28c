"""Git settings that override a repository's own, for Daiku's git and for git in commands."""

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
_COMMON: Settings = (
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
"""Let git compare only size and time: inodes change if the sandbox covers a file."""
FOR_COMMANDS: Settings = (
    *_COMMON,
    ("core.sshCommand", "ssh"),
    ("interactive.diffFilter", ""),
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("gpg.x509.program", "gpgsm"),
)
"""Settings that no repository may change for the git of a command."""
FOR_TOOLS: Settings = (
    *_COMMON,
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
"""Settings for the git of Daiku's own tools, which needs no other program."""
_PROGRAMS = (
    r"^diff\.external$|^(filter|diff|merge)\..*\.(clean|smudge|process|textconv|command|driver)$|^alias\.|^remote\..*\.(uploadpack|receivepack|vcs)$"
    r"|^submodule\..*\.update$|^(difftool|mergetool)\..*\.cmd$"
)
_IDENTITY = r"^user\.(name|email)$"
LIST_ARGUMENTS = ("config", "--null", "--show-scope", "--get-regexp", f"{_PROGRAMS}|{_IDENTITY}")
"""Arguments with which git lists the settings for `parse_settings`."""
_LARGE_FILES = re.compile(r"git-lfs (?:clean -- %f|smudge(?: --skip)? -- %f|filter-process(?: --skip)?)")
"""Matches the commands that Git LFS writes into a repository's settings."""
_TIMEOUT_SECONDS = 10
"""Seconds that git may take."""


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """Git settings of a repository and its user.

    `off` disables the programs that the repository's own settings name, and `large_files` those of Git LFS.
    `who` is the user's name and email, if the repository does not set another.
    """

    off: Settings = ()
    large_files: Settings = ()
    who: Settings = ()


def to_git_env(settings: Settings) -> dict[str, str]:
    """Convert settings to environment variables of git, which override all files.

    Options (`-c NAME=VALUE`) would not work, because a name from a repository may contain `=`.
    """
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (name, value) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{index}"] = name
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables


def parse_settings(output: str) -> RepositorySettings:
    """Parse the output of `git config` for LIST_ARGUMENTS."""
    fields = output.split("\0")
    off: dict[str, str] = {}
    large_files: dict[str, str] = {}
    identity: dict[str, str] = {}
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = setting.partition("\n")
        is_own = scope in ("local", "worktree")
        if name in ("user.name", "user.email"):
            identity.pop(name, None)
            if not is_own:
                identity[name] = value
        elif is_own:
            (large_files if _LARGE_FILES.fullmatch(value) else off).update(_disable_program(name))
    return RepositorySettings(tuple(off.items()), tuple(large_files.items()), tuple(identity.items()))


def _disable_program(name: str) -> dict[str, str]:
    """Return settings that disable the program of the setting `name`."""
    # An empty textconv is an error to git, so use one that changes nothing.
    defaults = {"submodule": "checkout", "textconv": "cat"}
    parts = name.split(".")
    settings = {name: defaults.get(parts[0]) or defaults.get(parts[-1], "")}
    if name.endswith(("uploadpack", "receivepack")):  # git uses the first value, which already exists
        settings["protocol.file.allow"] = "never"
    if name.startswith("filter."):
        settings[f"{name.rpartition('.')[0]}.required"] = "false"
    return settings


_cache: dict[Path, tuple[tuple[int, ...], RepositorySettings]] = {}


def read_effective_settings(
    root: Path, folder: Path | None, environ: Mapping[str, str]
) -> RepositorySettings | None:
    """Return the git settings in effect at `root`; None if git fails.

    `folder`: the git folder (None: there is none). `environ`: the environment of git.
    """
    home = Path(environ.get("HOME") or "/")
    settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    files = [folder / name for name in ("config", "config.worktree")] if folder else []
    stamps = tuple(_read_stamp(file) for file in (*files, home / ".gitconfig", settings))
    cached = _cache.get(folder or root)
    if cached is not None and cached[0] == stamps:
        return cached[1]
    git = find_program("git", (root,))
    output = _run_git([git, *LIST_ARGUMENTS], root, environ) if git else ""
    if output is None:
        return None
    parsed = parse_settings(output)
    _cache[folder or root] = (stamps, parsed)
    return parsed


_LISTS_NAMES = frozenset({"ls-tree", "rev-parse", "show"})
"""Subcommands of git that print only the names of a tree."""
_REVISION_PATH = lazy(r"(?::(?![!^(/])(?:[0-3]:)?|(?:[^:{]|\{[^}]*\})+:)(?P<path>.+)", re.DOTALL)


def find_hidden_object(
    command: str, folder: Path, top: Path, environ: Mapping[str, str], is_closed: Callable[[Path], bool]
) -> str:
    """Return the word of a git command that names a closed file in a revision, or a blob without its path.

    A blob without a path may be secret or closed. Empty if there is none.
    """
    pieces: list[tuple[str, str]] = []
    for simple in read_script(command).commands:
        if program_name(simple.words) != "git":
            continue
        subcommand, arguments = find_git_subcommand(simple.words)
        for word in arguments:
            # A range has two revisions.
            for piece in dict.fromkeys((word, *re.split(r"\.{2,3}", word.lstrip("^")))):
                match = _REVISION_PATH.fullmatch(piece)
                if match and _is_closed_path(match["path"], folder, top, is_closed):
                    return piece
                if piece.isprintable() and not piece.startswith("-"):
                    pieces.append((subcommand, piece))
    git = find_program("git", (folder,)) if pieces else ""
    if not git:
        return ""
    object_names = "".join(f"{piece}\n" for _, piece in pieces)
    kinds = _run_git([git, "cat-file", "--batch-check=%(objecttype)"], folder, environ, object_names) or ""
    for (subcommand, piece), kind in zip(pieces, kinds.splitlines(), strict=False):
        if (kind == "blob" and ":" not in piece) or (kind == "tree" and subcommand not in _LISTS_NAMES):
            return piece
    return ""


def _is_closed_path(path: str, folder: Path, top: Path, is_closed: Callable[[Path], bool]) -> bool:
    base = folder if path.startswith(("./", "../")) else top
    return is_closed(Path(os.path.normpath(base / path)))


def _run_git(argv: list[str], root: Path, environ: Mapping[str, str], stdin: str = "") -> str | None:
    try:
        return wait_for_program(argv, root, {**environ, **REACHES_NOTHING}, stdin, seconds=_TIMEOUT_SECONDS)[
            1
        ]
    except OSError:
        return None


def _read_stamp(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError:
        return 0
