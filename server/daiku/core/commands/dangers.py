"""Find commands that cannot be undone or checked beforehand: they delete, install, or run downloaded code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.network import named_program
from daiku.core.commands.words import Word
from daiku.core.commands.wrappers import SHELLS, program_name
from daiku.texts.text import Text, text

DELETES = text("commands.deletes")
DOWNLOADED = text("commands.downloaded_code")
INSTALLS = text("commands.installs")

_REMOVERS = frozenset(
    ["rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "del", "erase", "rd", "remove-item", "wipe", "wipefs",
     "truncate", "dropdb", "blkdiscard", "bleachbit"]
)  # fmt: skip
_DATABASES = frozenset(
    ["psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "redis-cli", "clickhouse-client"]
)
_DROPS = re.compile(r"\b(?:drop|truncate|delete\s+from|flushall|flushdb)\b", re.IGNORECASE)
_GIT_DELETES: dict[str, tuple[str, ...]] = {
    "clean": (),
    "rm": (),
    "filter-branch": (),
    "filter-repo": (),
    "reflog": ("expire", "delete"),
    "gc": ("--prune",),
    "prune": (),
    "reset": ("--hard", "--merge", "--keep"),
    "checkout": ("--", ".", "-f", "--force", "-B"),
    "switch": ("-f", "--force", "--discard-changes", "-C"),
    "restore": (),
    "branch": ("-d", "-D", "--delete", "-f", "--force", "-M"),
    "tag": ("-d", "--delete", "-f", "--force"),
    "stash": ("drop", "clear", "pop"),
    "update-ref": ("-d",),
    "worktree": ("remove", "prune"),
    "push": ("-f", "--force", "--force-with-lease", "--force-if-includes", "-d", "--delete", "--mirror", "--prune"),
    "remote": ("rm", "remove", "prune"),
    "submodule": ("deinit",),
}  # fmt: skip
"""Sub-commands of git with the words of theirs that delete; none: always."""
_WORDS_DELETE = frozenset(
    ["delete", "del", "destroy", "prune", "purge", "rmi", "uninstall", "unpublish", "yank", "down", "remove-all", "rm",
     "rb"]
)  # fmt: skip
_MANAGES = frozenset(
    ["docker", "podman", "docker-compose", "kubectl", "helm", "terraform", "tofu", "aws", "gcloud", "az", "gh", "glab", "heroku",
     "vercel", "netlify", "flyctl", "fly", "npm", "pnpm", "yarn", "cargo", "gem", "rclone", "s3cmd", "gsutil", "snap", "flatpak",
     "pulumi", "doctl", "nerdctl"]
)  # fmt: skip
"""Programs whose sub-commands delete things that are not files of the workspace."""
_DELETE_OPTIONS: dict[str, tuple[str, ...]] = {
    "find": ("-delete",),
    "fd": ("--unlink",),
    "rsync": ("--delete", "--del", "--remove-source-files"),
    "tar": ("--remove-files", "--recursive-unlink", "--unlink-first"),
    "bsdtar": ("--remove-files",),
    "zip": ("-m", "--move"),
    "7z": ("-sdel",),
    "dd": ("of=",),
    "robocopy": ("/mir", "/purge", "/mov"),
}

_FETCHERS = frozenset(
    ["curl", "wget", "aria2c", "http", "https", "httpie", "fetch", "lynx", "links", "w3m", "scp", "sftp", "ftp", "rsync", "nc", "ncat",
     "netcat", "socat", "gh", "glab", "hub", "telnet", "rclone", "s3cmd", "aws", "gsutil", "svn", "hg", "ssh", "axel", "dig", "nslookup",
     "invoke-webrequest", "iwr", "irm", "invoke-restmethod", "certutil", "bitsadmin"]
)  # fmt: skip
_GIT_FETCHES = frozenset(["clone", "fetch", "pull", "submodule", "lfs", "archive", "remote"])
_HANDLES = frozenset(
    ["tar", "unzip", "gunzip", "gzip", "xz", "unxz", "zstd", "bunzip2", "7z", "mkdir", "cp", "mv", "ln", "chmod", "chown", "touch",
     "tee", "echo", "printf", "cat", "head", "tail", "grep", "rg", "sort", "uniq", "wc", "jq", "yq", "cut", "tr", "ls", "test", "[",
     "true", "false", "sha256sum", "sha1sum", "md5sum", "shasum", "diff", "cmp", "stat", "file", "base64", "rm", "rmdir", "sleep",
     "pwd", "date", "which", "cd", "export", "set", "less", "more", "column", "fold", "xxd", "hexdump", "od", "gpg"]
)  # fmt: skip
"""What handles a file without running it."""
_REMOTE = frozenset(["npx", "bunx", "pnpx", "uvx", "pipx"])
_REMOTE_SECOND: dict[str, frozenset[str]] = {
    "npm": frozenset(["exec", "x", "create", "init"]),
    "pnpm": frozenset(["dlx", "create"]),
    "yarn": frozenset(["dlx", "create"]),
    "bun": frozenset(["x", "create"]),
    "nix": frozenset(["run", "shell", "develop"]),
    "go": frozenset(["install", "get"]),
}
_INSTALLERS: dict[str, frozenset[str]] = {
    "npm": frozenset(
        ["install", "i", "ci", "add", "update", "up", "upgrade", "install-test", "it", "rebuild"]
    ),
    "pnpm": frozenset(["install", "i", "add", "update", "up"]),
    "yarn": frozenset(["", "install", "add", "up", "upgrade"]),
    "bun": frozenset(["install", "i", "add", "update"]),
    "pip": frozenset(["install", "wheel", "download"]),
    "pip3": frozenset(["install", "wheel", "download"]),
    "uv": frozenset(["add", "sync", "tool"]),
    "poetry": frozenset(["install", "add", "update"]),
    "pdm": frozenset(["install", "add", "update", "sync"]),
    "pipenv": frozenset(["install", "update", "sync"]),
    "conda": frozenset(["install", "create", "update", "env"]),
    "mamba": frozenset(["install", "create", "update", "env"]),
    "cargo": frozenset(["install"]),
    "gem": frozenset(["install", "update"]),
    "bundle": frozenset(["", "install", "update", "add"]),
    "composer": frozenset(["install", "update", "require", "create-project"]),
    "brew": frozenset(["install", "upgrade", "reinstall", "tap"]),
    "apt": frozenset(["install", "upgrade", "full-upgrade"]),
    "apt-get": frozenset(["install", "upgrade", "dist-upgrade"]),
    "dnf": frozenset(["install", "upgrade"]),
    "yum": frozenset(["install", "update"]),
    "apk": frozenset(["add", "upgrade"]),
    "pacman": frozenset(["-S", "-Syu", "-Sy", "-U"]),
    "easy_install": frozenset([""]),
    "code": frozenset(["--install-extension"]),
    "dotnet": frozenset(["tool", "new"]),
    "gh": frozenset(["extension"]),
}
_REMOTE_CODE = re.compile(r"^(?:git\+|https?://|ssh://|github:|npm:|jsr:)", re.IGNORECASE)


def dangers(every: Collection[SimpleCommand]) -> tuple[Text, ...]:
    """Return which dangers the commands `every` have: they delete, run downloaded code, or install. Such a
    command is never remembered by "always"."""
    parts = [simple.words for simple in every if simple.words]
    found: dict[Text, None] = {}
    if any(_deletes(words) for words in parts):
        found[DELETES] = None
    fetches = any(_fetches(words) for words in parts)
    if any(_runs_remote(words) for words in parts) or (fetches and any(_runs_code(words) for words in parts)):
        found[DOWNLOADED] = None
    if is_installation(every):
        found[INSTALLS] = None
    return tuple(found)


def is_installation(every: Iterable[SimpleCommand]) -> bool:
    """Return True if one of the commands installs packages."""
    return any(_installs(simple.words) for simple in every if simple.words)


def _second(texts: tuple[str, ...]) -> str:
    return next((text for text in texts if not text.startswith("-")), "")


def _deletes(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    if name in _REMOVERS or name.startswith("mkfs"):
        return True
    if name == "git":
        return _git_deletes(texts)
    if name in _DATABASES:
        return any(_DROPS.search(text) for text in texts)
    if name in _MANAGES and any(text in _WORDS_DELETE for text in texts if not text.startswith("-")):
        return True
    options = _DELETE_OPTIONS.get(name, ())
    return any(text.startswith(option) for text in texts for option in options)


def _git_deletes(texts: tuple[str, ...]) -> bool:
    for at, word in enumerate(texts):
        if word not in _GIT_DELETES:
            continue
        marks, rest = _GIT_DELETES[word], texts[at + 1 :]
        if word == "clean" and any(_is_option(mark, given) for mark in ("-n", "--dry-run") for given in rest):
            continue
        if not marks or any(_is_option(mark, given) for mark in marks for given in rest):
            return True
        if word == "push" and any(given.startswith(("+", ":")) for given in rest):
            return True
    return False


def _is_option(mark: str, given: str) -> bool:
    if given == mark or given.startswith(mark + "="):
        return True
    if mark.startswith("--") and len(mark) > 2:
        return len(given) > 4 and mark.startswith(given)  # options may be abbreviated
    one_letter = len(mark) == 2 and mark[0] == "-" and mark[1] != "-"
    return one_letter and given.startswith("-") and not given.startswith("--") and mark[1] in given


def _fetches(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    return name in _FETCHERS or (name == "git" and any(text in _GIT_FETCHES for text in texts))


def _runs_code(words: tuple[Word, ...]) -> bool:
    """True for all but what is known to fetch or to handle files: any program may be what was fetched."""
    name = program_name(words)
    if name in SHELLS or not words[0].plain or "/" in words[0].text:
        return True
    return name != "git" and name not in _HANDLES and name not in _FETCHERS


def _runs_remote(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    if name in _REMOTE or _second(texts) in _REMOTE_SECOND.get(name, ()):
        return True
    if name == "go" and texts[:1] == ("run",) and any("@" in text for text in texts):
        return True
    runs = name in ("deno", "bun", "go", "pip", "pip3", "uv", "cargo", "npm", "pnpm", "yarn")
    return runs and any(_REMOTE_CODE.match(text) or "git+" in text for text in texts)


def _installs(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    seconds = _INSTALLERS.get(name)
    return seconds is not None and (_second(texts) in seconds or any(text in seconds for text in texts[:1]))
