"""Transfers with remote repositories, and the only way by which a password reaches git."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from daiku.dataclass import dataclass, field
from daiku.tools.git.ownrun import (
    COMMIT_ID,
    GitRefusal,
    OwnGit,
    find_refusal,
    is_branch,
    make_refusal,
    run_git,
)
from daiku.tools.shell.capture import ProgramResult
from daiku.tools.shell.gitsettings import FOR_TOOLS, Settings
from daiku.workspace.repository import REACHES_NOTHING

LIST_SECONDS = 60.0
"""Seconds for listing the refs of a server."""
PUSH_SECONDS = 300.0
"""Seconds for a push."""
PRIVATE = "refs/daiku/"
"""Prefix of Daiku's own refs, which are not branches."""
# Reasons to reject a ref: a concurrent push, or a failure of the server. Any other is a rule of the server.
_CONCURRENT_PUSH = r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
_SERVER_FAILURE = r"unpacker|unpack-objects|index-pack|remote failed to report|no space"
_PASSED_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
              "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH")  # fmt: skip
_TRANSFER: Settings = (
    ("http.followRedirects", "false"),
    ("transfer.fsckObjects", "true"),
    ("fetch.fsckObjects", "true"),
    ("transfer.bundleURI", "false"),
    ("fetch.uriProtocols", ""),
    ("push.recurseSubmodules", "no"),
    ("push.followTags", "false"),
    ("push.gpgSign", "false"),
    # Old histories have these flaws; they are harmless.
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.missingNameBeforeEmail", "ignore"),
    ("fetch.fsck.missingSpaceBeforeEmail", "ignore"),
    ("fetch.fsck.missingEmail", "ignore"),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on a server: its address without credentials, the user, and the secret.

    `here`: it may also be a folder of this machine, or use plain http.
    """

    url: str
    user: str = ""
    secret: SecretStr = field(default_factory=lambda: SecretStr(""))
    here: bool = False


@dataclass(frozen=True, slots=True)
class PushResult:
    """A successful push: the branch is at `commit`.

    `new`: it did not exist; `changed`: it was not there already.
    """

    commit: str
    new: bool = False
    changed: bool = True


async def push(
    mirror: Path, remote: Remote, branch: str, commit: str, expected: str, *, default: str
) -> PushResult | GitRefusal:
    """Set `branch` of the server (or a ref below PRIVATE) to `commit` if it is at `expected` ("": absent)."""
    ref = _expand_ref(branch)
    if not ref or not COMMIT_ID.fullmatch(commit) or (expected and not COMMIT_ID.fullmatch(expected)):
        return make_refusal("unusable")
    if not default or branch == default:
        return make_refusal("forbidden")
    git = OwnGit(mirror)
    if not await git.find_commit(commit):
        return make_refusal("damaged")
    if expected and not await git.is_descendant(commit, expected):
        return make_refusal("moved")
    argv = [
        "push",
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--no-follow-tags",
        "--recurse-submodules=no",
    ]
    argv += [f"--force-with-lease={ref}:{expected}", *_wrap_program(remote, "receive-pack")]
    result = await transfer(remote, argv, (f"{commit}:{ref}",), folder=mirror, seconds=PUSH_SECONDS)
    if isinstance(result, GitRefusal):
        return result
    return _parse_push(result, ref, commit, expected)


def _parse_push(result: ProgramResult, ref: str, commit: str, expected: str) -> PushResult | GitRefusal:
    """Parse git's porcelain output of a push. Without a line for the ref, the result is unknown."""
    lines = (line.split("\t") for line in result.text.splitlines())
    fields = next((parts for parts in lines if len(parts) == 3 and parts[1].endswith(f":{ref}")), None)
    if fields is None:
        return find_refusal(result, "unreachable") or make_refusal("unreachable")
    flag, _, summary = fields
    if flag != "!":
        return (
            PushResult(commit, flag == "*", flag != "=") if result.code == 0 else make_refusal("unreachable")
        )
    reason = summary.lower()
    if "[rejected]" in reason:
        return make_refusal("moved" if expected else "exists")
    if re.search(_CONCURRENT_PUSH, reason):
        return make_refusal("moved" if expected else "exists")
    if re.search(_SERVER_FAILURE, reason):
        return make_refusal("unreachable")
    return make_refusal("forbidden")


async def delete_ref(mirror: Path, remote: Remote, name: str, expected: str) -> GitRefusal | None:
    """Delete the ref `name` below PRIVATE from the server if it is at `expected`.

    Returns the refusal, if any.
    """
    if not name.startswith(PRIVATE) or not _expand_ref(name) or not COMMIT_ID.fullmatch(expected):
        return make_refusal("unusable")
    argv = ["push", "--porcelain", "--no-verify", "--no-signed", f"--force-with-lease={name}:{expected}"]
    argv += _wrap_program(remote, "receive-pack")
    result = await transfer(remote, argv, (f":{name}",), folder=mirror, seconds=PUSH_SECONDS)
    if isinstance(result, GitRefusal):
        return result
    outcome = _parse_push(result, name, expected, expected)
    return outcome if isinstance(outcome, GitRefusal) else None


async def read_remote_head(remote: Remote, branch: str) -> str | GitRefusal:
    """Return the current commit of the server's `branch`; empty if there is none."""
    ref = _expand_ref(branch)
    if not ref:
        return make_refusal("unusable")
    refs = await _list_refs(remote, ("--quiet",), ref)
    if isinstance(refs, GitRefusal):
        return refs
    return next((commit for commit, name in refs if name == ref and COMMIT_ID.fullmatch(commit)), "")


async def read_default_branch(remote: Remote) -> str | GitRefusal:
    """Return the server's default branch; empty if the repository has no commit."""
    refs = await _list_refs(remote, ("--quiet", "--symref"), "HEAD")
    if isinstance(refs, GitRefusal):
        return refs
    branches = (target.partition("refs/heads/")[2] for target, name in refs if name == "HEAD")
    return next(filter(None, branches), "")


async def _list_refs(
    remote: Remote, options: tuple[str, ...], ref: str
) -> list[tuple[str, str]] | GitRefusal:
    argv = ["ls-remote", *options, *_wrap_program(remote, "upload-pack")]
    result = await transfer(remote, argv, (ref,), seconds=LIST_SECONDS)
    if isinstance(result, GitRefusal):
        return result
    if (refusal := find_refusal(result, "unreachable")) is not None:
        return refusal
    pairs = (line.partition("\t") for line in result.text.splitlines())
    return [(first, name) for first, _, name in pairs]


async def fetch(folder: Path, remote: Remote, refspecs: tuple[str, ...], seconds: float) -> GitRefusal | None:
    """Fetch `refspecs` into the bare repository `folder`, and prune refs. Returns the refusal, if any."""
    argv = ["fetch", "--quiet", "--prune", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
    argv += ["--no-auto-maintenance", "--no-show-forced-updates", *_wrap_program(remote, "upload-pack")]
    result = await transfer(remote, argv, refspecs, folder=folder, seconds=seconds)
    return result if isinstance(result, GitRefusal) else find_refusal(result, "unreachable")


async def transfer(
    remote: Remote, argv: list[str], refs: tuple[str, ...], *, seconds: float, folder: Path | None = None
) -> ProgramResult | GitRefusal:
    """Run git with only the transport of `remote`: `argv`, its address, `refs`.

    Without `folder` it runs outside any repository.
    """
    address = check_address(remote)
    if not address:
        return make_refusal("unusable")
    protocol = address.partition("://")[0] if "://" in address else "file"
    if protocol == "file" and await asyncio.to_thread(_is_partial_clone, Path(address)):
        return make_refusal("unusable")
    env = {"GIT_ALLOW_PROTOCOL": protocol, "GIT_DIR": str(folder) if folder else os.devnull}
    env |= {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    with _provide_password(remote) as (helper, inherited):
        return await run_git(
            [*argv, "--", address, *refs],
            folder or Path("/"),
            env=env,
            settings=(*_TRANSFER, *helper),
            seconds=seconds,
            inherited=inherited,
        )


@contextmanager
def _provide_password(remote: Remote) -> Generator[tuple[Settings, tuple[int, ...]]]:
    """Yield settings by which git reads the password, and the pipe that contains it.

    The password is in no argument, file, or environment. The shell that git starts reads the pipe once, only
    for this server.
    """
    secret = remote.secret.get_secret_value()
    parts = urlsplit(remote.url)
    if not secret or parts.scheme not in ("https", "http"):
        yield (), ()
        return
    read_end, write_end = os.pipe()
    try:
        try:
            os.write(write_end, f"username={remote.user or 'git'}\npassword={secret}\n".encode())
        finally:
            os.close(write_end)
        # By its path: a shell need not support descriptors above 9.
        lines = f"while IFS= read -r l; do printf '%s\\n' \"$l\"; done </dev/fd/{read_end}"
        helper = f'!f() {{ test "$1" = get && {lines}; }}; f'
        yield ((f"credential.{parts.scheme}://{parts.netloc}.helper", helper),), (read_end,)
    finally:
        os.close(read_end)


def check_address(remote: Remote) -> str:
    """Return the address for git; empty if it is not allowed."""
    url, secret = remote.url, remote.secret.get_secret_value()
    if any(char <= " " or char == "\x7f" for char in url) or re.search(r"[\r\n\0]", remote.user + secret):
        return ""
    if len(secret) + len(remote.user) > 4000:  # always fits in a pipe's buffer
        return ""
    if remote.here and url.startswith(("/", "file:///")):
        return url.removeprefix("file://")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in (("https", "http") if remote.here else ("https",)) or port == 0:
        return ""
    return (
        url if parts.hostname and "@" not in parts.netloc and not parts.query and not parts.fragment else ""
    )


def _is_partial_clone(folder: Path) -> bool:
    """Return True if the repository in `folder` fetches missing objects by a program that it names."""
    for settings in (folder / "config", folder / ".git" / "config"):
        if settings.is_file() and re.search(
            r"(?i)partialclone|promisor", settings.read_text("utf-8", "replace")
        ):
            return True
    return False


def _wrap_program(remote: Remote, name: str) -> tuple[str, ...]:
    """Return the option that runs the other side of a local repository without the programs of its settings.

    Git drops our settings for that process, so they are part of its command.
    """
    if "://" in remote.url and not remote.url.startswith("file://"):
        return ()
    env = [f"{key}={shlex.quote(value)}" for key, value in REACHES_NOTHING.items()]
    overrides = (*FOR_TOOLS, ("receive.denyCurrentBranch", "refuse"), ("receive.autogc", "false"))
    settings = [
        f"-c {shlex.quote(f'{key}={value}')}" for key, value in overrides if key != "safe.bareRepository"
    ]
    return (f"--{name}={' '.join([*env, 'git', *settings, name])}",)


def _expand_ref(branch: str) -> str:
    if branch.startswith(PRIVATE):
        return branch if is_branch(branch.removeprefix(PRIVATE)) else ""
    return f"refs/heads/{branch}" if is_branch(branch) else ""
