"""What git could give away or run on its way to a server: passwords, redirects, settings of a person or a repository."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from daiku.tools.git.mirror import update_mirror
from daiku.tools.git.remote import PushResult, Remote, push, read_default_branch, read_remote_head
from tests.conftest import ROOT
from tests.services.git_server import Fault, git_server
from tests.tools.git.bench import TOKEN, Bench, bench_at, git, in_the_home, kind
from tests.tools.mcp.play import until

pytestmark = pytest.mark.slow  # real git


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path) as made:
        yield made


@pytest.mark.parametrize("first", [("redirect",), ("401", "redirect")])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_redirect_is_not_followed_and_gets_no_password(
    bench: Bench, tmp_path: Path, first: tuple[Fault, ...], host: str
) -> None:
    own, commit = await bench.commit()
    (tmp_path / "other").mkdir()
    with git_server(tmp_path / "other") as other:
        other.tokens = {"bot": "anything"}
        bench.server.elsewhere = other.url.replace("127.0.0.1", host)
        for asks in (
            lambda: read_remote_head(bench.remote(), "main"),
            lambda: update_mirror(bench.own / "m", bench.remote()),
            lambda: push(own, bench.remote(), "daiku/1-x", commit, "", default="main"),
        ):
            bench.server.faults = [("", fault) for fault in first]
            assert kind(await asks()) == "gone"
        bench.server.faults = [("/git-receive-pack?", "redirect")]
        assert kind(await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")) == "gone"
        assert other.received == []


@pytest.mark.parametrize(
    "url",
    [
        "https://bot:pw@example.org/o/r",
        "https://bot@example.org/o/r",
        "http://example.org/o/r",
        "ssh://git@example.org/o/r",
        "git@example.org:o/r",
        "ext::sh -c touch% x",
        "file:///srv/r",
        "/srv/r",
        "--upload-pack=x",
        "https://",
        "https:///o/r",
        "https://example.org/o/r?x=1",
        "https://example.org/o/r#x",
        "https://example.org/o/r\nx",
        "https://[x/o/r",
        "https://example.org:0/o/r",
        "",
    ],
)
async def test_only_plain_https_addresses_are_used(url: str, tmp_path: Path) -> None:
    remote = Remote(url, "bot", SecretStr(TOKEN))
    assert kind(await read_remote_head(remote, "main")) == "unusable"
    assert kind(await update_mirror(tmp_path, remote)) == "unusable"
    assert (
        kind(await read_remote_head(Remote("https://h.invalid/r", "a\nhost=x", SecretStr("x")), "main"))
        == "unusable"
    )


async def test_the_password_is_in_no_argument_environment_or_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes of the machine are looked at all the while, and twice when git waits for the server."""
    programs = tmp_path / "programs"
    programs.mkdir()
    told = tmp_path / "told"
    real = shutil.which("git")
    (programs / "git").write_text(f'#!/bin/sh\n{{ echo "$0" "$@"; env; }} >>{told}\nexec {real} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr("daiku.workspace.programs.SYSTEM_FOLDERS", ())
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                for name in ("cmdline", "environ"):
                    try:
                        if TOKEN.encode() in (entry / name).read_bytes():
                            seen.append(f"{entry}/{name}: {(entry / 'cmdline').read_bytes()!r}")
                    except OSError:
                        continue

    def keep_looking() -> None:
        while not over.is_set():
            look()

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        own, commit = await bench.commit()
        assert await read_default_branch(bench.remote()) == "main"
        bench.server.faults = [("/git-receive-pack?", "hang")]
        monkeypatch.setattr("daiku.tools.git.remote.PUSH_SECONDS", 3.0)
        waits = asyncio.ensure_future(push(own, bench.remote(), "daiku/1-x", commit, "", default="main"))
        await until(bench.server.waiting.is_set)
        look()
        assert kind(await waits) == "unreachable"
        monkeypatch.setattr("daiku.tools.git.remote.PUSH_SECONDS", 300.0)
        assert isinstance(
            await push(own, bench.remote(), "daiku/1-x", commit, "", default="main"), PushResult
        )
    finally:
        over.set()
        thread.join()
    assert seen == []
    assert "push" in told.read_text()
    assert TOKEN not in told.read_text()
    assert bench.holds(TOKEN, bench.server.url) == []  # not even the address
    assert TOKEN not in repr(bench.remote())


async def test_a_persons_own_settings_and_passwords_have_no_say(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, canary = tmp_path / "home", tmp_path / "CANARY"
    home.mkdir()
    evil = f"!touch {canary}"
    (home / ".gitconfig").write_text(
        f'[credential]\n\thelper = "{evil}"\n[core]\n\thooksPath = {home}/hooks\n\taskPass = {home}/ask\n\tsshCommand = touch {canary}\n'
        f'[url "ext::touch {canary}"]\n\tinsteadOf = {bench.server.url}\n[protocol]\n\tallow = always\n'
    )
    (home / ".netrc").write_text("machine 127.0.0.1 login netrc password NETRC\n")
    for hook in ("pre-push", "post-checkout", "reference-transaction"):
        (home / "hooks").mkdir(exist_ok=True)
        (home / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (home / "hooks" / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_ASKPASS", f"{home}/ask")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {canary}")
    monkeypatch.setenv("GIT_DIR", str(home))
    own, commit = await bench.commit()
    assert isinstance(await push(own, bench.remote(), "daiku/1-x", commit, "", default="main"), PushResult)
    assert not canary.exists()
    given = {each.authorization for each in bench.server.received}
    assert len(given) == 2  # none, and ours


async def test_a_folder_of_this_machine_is_one_too_and_runs_nothing() -> None:
    """Its hooks and the programs that its settings name are those of whoever filled it."""
    with in_the_home() as folder:
        (folder / "theirs").mkdir()
        with bench_at(folder / "theirs") as bench:
            place, canary = bench.server.place("o/r"), folder / "CANARY"
            script = folder / "evil.sh"
            script.write_text(f"#!/bin/sh\ntouch {canary}\n")
            script.chmod(0o755)
            for hook in (
                "pre-receive",
                "update",
                "post-receive",
                "post-update",
                "reference-transaction",
                "proc-receive",
            ):
                (place / "hooks").mkdir(exist_ok=True)
                (place / "hooks" / hook).write_text(script.read_text())
                (place / "hooks" / hook).chmod(0o755)
            for name in (
                "core.fsmonitor",
                "core.alternateRefsCommand",
                "uploadpack.packObjectsHook",
                "core.sshCommand",
            ):
                git(place, "config", name, str(script))
            git(place, "config", "core.hooksPath", str(place / "hooks"))
            (place / "objects" / "info" / "alternates").write_text(f"{bench.server.folder / 'nowhere'}\n")
            remote = Remote(str(place), here=True)
            own = await update_mirror(bench.own / "mirrors", remote)
            assert isinstance(own, Path), own
            assert await read_default_branch(remote) == "main"
            made = await push(own, remote, "daiku/2-y", bench.first, "", default="main")
            assert isinstance(made, PushResult), made
            assert await read_remote_head(replace(remote, url=f"file://{place}"), "daiku/2-y") == bench.first
            assert not canary.exists()
            git(place, "config", "remote.evil.promisor", "true")
            assert kind(await read_remote_head(remote, "main")) == "unusable"
            assert kind(await read_remote_head(replace(remote, here=False), "main")) == "unusable"


def test_one_module_lets_git_reach_another_machine() -> None:
    """All other git of ours has `GIT_ALLOW_PROTOCOL=none`, from one table; `daiku eval` clones what a person named."""
    server = ROOT / "server" / "daiku"
    named = {
        each.relative_to(server).as_posix()
        for each in server.rglob("*.py")
        if "GIT_ALLOW_PROTOCOL" in each.read_text("utf-8")
    }
    assert named == {"eval/copies.py", "tools/git/remote.py", "workspace/repository.py"}
