"""Repositories on other machines: the one place that uses a transport, and how a password gets to git and nowhere else."""

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
from daiku.tools.git.ownrun import COMMIT, GitRefusal, OwnGit, is_branch, refusal_of, refused, run_git
from daiku.tools.shell.capture import ProgramResult
from daiku.tools.shell.gitsettings import FOR_TOOLS, Settings
from daiku.workspace.repository import REACHES_NOTHING

LOOK_SECONDS = 60.0
PUSH_SECONDS = 300.0
PRIVATE = "refs/daiku/"
"""Refs that are nobody's branch: what Daiku keeps for itself."""
# Why a server did not take a ref: somebody was faster, or it failed itself. All else is a rule of its own.
_OVERTAKEN = r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
_FAILED_THERE = r"unpacker|unpack-objects|index-pack|remote failed to report|no space"
_PASSED_ON = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
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
    # Old histories have these; none of them makes git do anything.
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.missingNameBeforeEmail", "ignore"),
    ("fetch.fsck.missingSpaceBeforeEmail", "ignore"),
    ("fetch.fsck.missingEmail", "ignore"),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on a server: its address without any name in it, and who asks. `here`: it may also be a folder
    of this machine, or plain http."""

    url: str
    user: str = ""
    secret: SecretStr = field(default_factory=lambda: SecretStr(""))
    here: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """The branch is at `commit` on the server. `new`: there was none before; `changed`: it was not there already."""

    commit: str
    new: bool = False
    changed: bool = True


async def push(
    mirror: Path, remote: Remote, branch: str, commit: str, expected: str, *, default: str
) -> Pushed | GitRefusal:
    """Put `branch` of the server (or a ref below PRIVATE) at `commit`, where it is at `expected` now; empty: it must not
    be there. Nobody's commit is dropped by it, and the branch `default` is never pushed. Of `unreachable` it is
    not known whether it happened: `remote_head` tells."""
    ref = _full(branch)
    if not ref or not COMMIT.fullmatch(commit) or (expected and not COMMIT.fullmatch(expected)):
        return refused("unusable")
    if not default or branch == default:
        return refused("forbidden")
    own = OwnGit(mirror)
    if not await own.commit_of(commit):
        return refused("damaged")
    if expected and not await own.descends(commit, expected):
        return refused("moved")
    told = [
        "push",
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--no-follow-tags",
        "--recurse-submodules=no",
    ]
    told += [f"--force-with-lease={ref}:{expected}", *_programs(remote, "receive-pack")]
    done = await transfer(remote, told, (f"{commit}:{ref}",), folder=mirror, seconds=PUSH_SECONDS)
    if isinstance(done, GitRefusal):
        return done
    return _outcome(done, ref, commit, expected)


def _outcome(done: ProgramResult, ref: str, commit: str, expected: str) -> Pushed | GitRefusal:
    """What git's list of refs says; without one the push came to no answer."""
    lines = (line.split("\t") for line in done.text.splitlines())
    found = next((parts for parts in lines if len(parts) == 3 and parts[1].endswith(f":{ref}")), None)
    if found is None:
        return refusal_of(done, "unreachable") or refused("unreachable")
    flag, _, summary = found
    if flag != "!":
        return Pushed(commit, flag == "*", flag != "=") if done.code == 0 else refused("unreachable")
    reason = summary.lower()
    if "[rejected]" in reason:
        return refused("moved" if expected else "exists")
    if re.search(_OVERTAKEN, reason):
        return refused("moved" if expected else "exists")
    if re.search(_FAILED_THERE, reason):
        return refused("unreachable")
    return refused("forbidden")


async def drop(mirror: Path, remote: Remote, name: str, expected: str) -> GitRefusal | None:
    """Take the ref `name` below PRIVATE from the server, where it is at `expected` now; why not."""
    if not name.startswith(PRIVATE) or not _full(name) or not COMMIT.fullmatch(expected):
        return refused("unusable")
    told = ["push", "--porcelain", "--no-verify", "--no-signed", f"--force-with-lease={name}:{expected}"]
    told += _programs(remote, "receive-pack")
    done = await transfer(remote, told, (f":{name}",), folder=mirror, seconds=PUSH_SECONDS)
    if isinstance(done, GitRefusal):
        return done
    outcome = _outcome(done, name, expected, expected)
    return outcome if isinstance(outcome, GitRefusal) else None


async def remote_head(remote: Remote, branch: str) -> str | GitRefusal:
    """The commit that `branch` of the server is at now; empty where there is no such branch."""
    ref = _full(branch)
    if not ref:
        return refused("unusable")
    listed = await _listed(remote, ("--quiet",), ref)
    if isinstance(listed, GitRefusal):
        return listed
    return next((commit for commit, name in listed if name == ref and COMMIT.fullmatch(commit)), "")


async def default_branch(remote: Remote) -> str | GitRefusal:
    """The branch that the server names first; empty where the repository has no commit."""
    listed = await _listed(remote, ("--quiet", "--symref"), "HEAD")
    if isinstance(listed, GitRefusal):
        return listed
    named = (what.partition("refs/heads/")[2] for what, name in listed if name == "HEAD")
    return next(filter(None, named), "")


async def _listed(remote: Remote, options: tuple[str, ...], ref: str) -> list[tuple[str, str]] | GitRefusal:
    told = ["ls-remote", *options, *_programs(remote, "upload-pack")]
    done = await transfer(remote, told, (ref,), seconds=LOOK_SECONDS)
    if isinstance(done, GitRefusal):
        return done
    if (why := refusal_of(done, "unreachable")) is not None:
        return why
    pairs = (line.partition("\t") for line in done.text.splitlines())
    return [(first, name) for first, _, name in pairs]


async def fetch(folder: Path, remote: Remote, refspecs: tuple[str, ...], seconds: float) -> GitRefusal | None:
    """Bring `refspecs` into the bare repository `folder`, and take away what the server has no more; why not."""
    told = ["fetch", "--quiet", "--prune", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
    told += ["--no-auto-maintenance", "--no-show-forced-updates", *_programs(remote, "upload-pack")]
    done = await transfer(remote, told, refspecs, folder=folder, seconds=seconds)
    return done if isinstance(done, GitRefusal) else refusal_of(done, "unreachable")


async def transfer(
    remote: Remote, told: list[str], refs: tuple[str, ...], *, seconds: float, folder: Path | None = None
) -> ProgramResult | GitRefusal:
    """Run git with the transport of `remote` and no other: `told`, its address, `refs`. Without `folder` it is run
    in no repository."""
    address = address_of(remote)
    if not address:
        return refused("unusable")
    protocol = address.partition("://")[0] if "://" in address else "file"
    if protocol == "file" and await asyncio.to_thread(_fetches_itself, Path(address)):
        return refused("unusable")
    env = {"GIT_ALLOW_PROTOCOL": protocol, "GIT_DIR": str(folder) if folder else os.devnull}
    env |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with _password(remote) as (helper, inherited):
        return await run_git(
            [*told, "--", address, *refs],
            folder or Path("/"),
            env=env,
            settings=(*_TRANSFER, *helper),
            seconds=seconds,
            inherited=inherited,
        )


@contextmanager
def _password(remote: Remote) -> Generator[tuple[Settings, tuple[int, ...]]]:
    """The settings by which git asks for the password, and the pipe in which it lies. It is in no argument, no file and
    nobody's environment: the shell that git starts for it reads the pipe once, and only for this one server."""
    secret = remote.secret.get_secret_value()
    parts = urlsplit(remote.url)
    if not secret or parts.scheme not in ("https", "http"):
        yield (), ()
        return
    reading, writing = os.pipe()
    try:
        try:
            os.write(writing, f"username={remote.user or 'git'}\npassword={secret}\n".encode())
        finally:
            os.close(writing)
        # By its name: a shell need not know numbers above 9.
        lines = f"while IFS= read -r l; do printf '%s\\n' \"$l\"; done </dev/fd/{reading}"
        helper = f'!f() {{ test "$1" = get && {lines}; }}; f'
        yield ((f"credential.{parts.scheme}://{parts.netloc}.helper", helper),), (reading,)
    finally:
        os.close(reading)


def address_of(remote: Remote) -> str:
    """What git is told to reach; empty where that is refused."""
    url, secret = remote.url, remote.secret.get_secret_value()
    if any(char <= " " or char == "\x7f" for char in url) or re.search(r"[\r\n\0]", remote.user + secret):
        return ""
    if len(secret) + len(remote.user) > 4000:  # what a pipe surely takes at once
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


def _fetches_itself(folder: Path) -> bool:
    """Whether the repository in `folder` is one that git completes from elsewhere, by a program that it names."""
    for settings in (folder / "config", folder / ".git" / "config"):
        if settings.is_file() and re.search(
            r"(?i)partialclone|promisor", settings.read_text("utf-8", "replace")
        ):
            return True
    return False


def _programs(remote: Remote, name: str) -> tuple[str, ...]:
    """The option by which the other side of a folder of this machine runs without the programs that its settings
    name. Git takes our settings away from it, so they are in its command."""
    if "://" in remote.url and not remote.url.startswith("file://"):
        return ()
    env = [f"{key}={shlex.quote(value)}" for key, value in REACHES_NOTHING.items()]
    off = (*FOR_TOOLS, ("receive.denyCurrentBranch", "refuse"), ("receive.autogc", "false"))
    settings = [f"-c {shlex.quote(f'{key}={value}')}" for key, value in off if key != "safe.bareRepository"]
    return (f"--{name}={' '.join([*env, 'git', *settings, name])}",)


def _full(branch: str) -> str:
    if branch.startswith(PRIVATE):
        return branch if is_branch(branch.removeprefix(PRIVATE)) else ""
    return f"refs/heads/{branch}" if is_branch(branch) else ""
