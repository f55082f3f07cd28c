"""Pushes and looks at a real server: by expected commit, with every failure as a value, and no password anywhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from daiku.tools.git.itemtree import snapshot
from daiku.tools.git.mirror import build_kept_ref, update_mirror
from daiku.tools.git.ownrun import is_branch
from daiku.tools.git.remote import PushResult, delete_ref, push, read_default_branch, read_remote_head
from tests.services.git_server import Fault
from tests.tools.git.bench import WHO, Bench, bench_at, git, kind
from tests.tools.mcp.play import until
from tests.tools.shell.test_shell import alive

pytestmark = pytest.mark.slow  # real git


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path) as made:
        yield made


async def test_a_branch_is_pushed_and_seen(bench: Bench) -> None:
    own, commit = await bench.commit()
    assert await read_remote_head(bench.remote(), "daiku/1-x") == ""
    pushed = await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")
    assert pushed == PushResult(commit, new=True)
    assert bench.server.head("o/r", "daiku/1-x") == commit
    assert await read_remote_head(bench.remote(), "daiku/1-x") == commit
    again = await push(own, bench.remote(), "daiku/1-x", commit, commit, default="main")
    assert again == PushResult(commit, changed=False)


async def test_a_ref_of_our_own_is_pushed_and_taken_away_and_no_branch_is(bench: Bench) -> None:
    own, commit = await bench.commit()
    ref = build_kept_ref("x-1")
    assert await push(own, bench.remote(), ref, commit, "", default="main") == PushResult(commit, new=True)
    assert await read_remote_head(bench.remote(), ref) == commit
    assert kind(await delete_ref(own, bench.remote(), ref, bench.first)) == "moved"
    assert await delete_ref(own, bench.remote(), ref, commit) is None
    assert await read_remote_head(bench.remote(), ref) == ""
    assert kind(await delete_ref(own, bench.remote(), "main", bench.first)) == "unusable"
    assert await read_remote_head(bench.remote(), "main") == bench.first


async def test_what_is_large_is_pushed_too(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "large").write_bytes(os.urandom(3_000_000))
    commit = await snapshot(tree, "large", WHO)
    assert isinstance(commit, str)
    assert await push(tree.mirror, bench.remote(), tree.branch, commit, "", default="main") == PushResult(
        commit, new=True
    )


@pytest.mark.parametrize("token", [" with spaces ", "a\\nb%s$(x)`y`'\"", "日本", "x" * 1500])
async def test_a_password_may_have_any_letters(bench: Bench, token: str) -> None:
    bench.server.tokens = {"bot": token}
    assert await read_remote_head(bench.remote(token), "main") == bench.first


async def test_a_branch_that_is_there_already_is_left_alone(bench: Bench) -> None:
    own, commit = await bench.commit()
    theirs = bench.server.commit("o/r", {"x": "theirs"}, branch="daiku/1-x")
    assert kind(await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")) == "exists"
    assert bench.server.head("o/r", "daiku/1-x") == theirs


async def test_who_pushed_meanwhile_is_not_overwritten(bench: Bench) -> None:
    own, commit = await bench.commit()
    await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")
    theirs = bench.server.commit("o/r", {"x": "theirs"}, branch="daiku/1-x")
    tree = await bench.tree()
    (tree.place / "more").write_text("more")
    mine = await snapshot(tree, "more", WHO)
    assert isinstance(mine, str)
    assert kind(await push(own, bench.remote(), "daiku/1-x", mine, commit, default="main")) == "moved"
    # Not even where the expected commit is right: what they made would be dropped.
    assert kind(await push(own, bench.remote(), "daiku/1-x", mine, theirs, default="main")) == "moved"
    assert bench.server.head("o/r", "daiku/1-x") == theirs


async def test_a_branch_that_was_forced_or_taken_away_meanwhile_is_not_put_back(bench: Bench) -> None:
    own, commit = await bench.commit()
    await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")
    tree = await bench.tree()
    (tree.place / "more").write_text("more")
    mine = await snapshot(tree, "more", WHO)
    assert isinstance(mine, str)
    for forced in (("update-ref", "refs/heads/daiku/1-x", bench.first), ("branch", "-D", "daiku/1-x")):
        git(bench.server.place("o/r"), *forced)
        assert kind(await push(own, bench.remote(), "daiku/1-x", mine, commit, default="main")) == "moved"


@pytest.mark.parametrize(
    "branch", ["main", "-f", "HEAD", "a..b", "a b", "refs/heads/main", "x:main", "", "a\nb", "+main", "*"]
)
async def test_the_default_branch_and_what_is_no_branch_are_never_pushed(bench: Bench, branch: str) -> None:
    own, commit = await bench.commit()
    before = len(bench.server.received)
    refused = await push(own, bench.remote(), branch, commit, "", default="main")
    if branch == "+main":  # git takes it for a name, as it is
        assert isinstance(refused, PushResult)
    else:
        assert kind(refused) == ("forbidden" if branch == "main" else "unusable")
        assert len(bench.server.received) == before
    assert bench.server.head("o/r", "main") == bench.first


async def test_a_private_ref_is_no_branch(bench: Bench) -> None:
    own, commit = await bench.commit()
    pushed = await push(own, bench.remote(), "refs/daiku/kept/1", commit, "", default="main")
    assert isinstance(pushed, PushResult)
    assert await read_remote_head(bench.remote(), "refs/daiku/kept/1") == commit
    assert bench.server.head("o/r", "kept/1") == ""


FAULTS: list[tuple[Fault, str]] = [
    ("401", "unauthorized"),
    ("403", "forbidden"),
    ("404", "gone"),
    ("429", "unreachable"),
    ("500", "unreachable"),
    ("reset", "unreachable"),
    ("cut", "unreachable"),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTS)
@pytest.mark.parametrize("at", ["info/refs", "/git-receive-pack?"])
async def test_a_push_that_fails_says_how(bench: Bench, fault: Fault, expected: str, at: str) -> None:
    own, commit = await bench.commit()
    if fault == "401" and at == "info/refs":  # the first one only asks who it is
        bench.server.faults = [(at, fault)]
    bench.server.faults.append((at, fault))
    found = await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")
    if isinstance(found, PushResult):  # a half answer may be enough for git
        assert bench.server.head("o/r", "daiku/1-x") == commit
    else:
        assert found.kind == expected


@pytest.mark.parametrize(("fault", "expected"), FAULTS)
async def test_a_look_and_a_fetch_that_fail_say_how(bench: Bench, fault: Fault, expected: str) -> None:
    twice: list[tuple[str, Fault]] = [("", fault), ("", fault)]
    bench.server.faults = list(twice)
    assert kind(await read_remote_head(bench.remote(), "main")) == expected
    bench.server.faults = list(twice)
    assert kind(await read_default_branch(bench.remote())) == expected
    bench.server.faults = list(twice)
    assert kind(await update_mirror(bench.own / "m", bench.remote())) == expected
    assert not list((bench.own / "m").glob("*.git*/"))


async def test_a_push_that_was_applied_before_its_answer_was_lost_is_found_by_looking(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.tools.git.remote.PUSH_SECONDS", 2.0)
    own, commit = await bench.commit()
    bench.server.faults = [("/git-receive-pack?", "applied-then-timeout")]
    refused = await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")
    assert kind(refused) == "unreachable"
    assert await read_remote_head(bench.remote(), "daiku/1-x") == commit
    assert alive(bench.server.url) == []


async def test_who_stops_waiting_leaves_no_git_behind(bench: Bench) -> None:
    own, commit = await bench.commit()
    bench.server.faults = [("/git-receive-pack?", "hang")]
    task = asyncio.ensure_future(push(own, bench.remote(), "daiku/1-x", commit, "", default="main"))
    await until(bench.server.waiting.is_set)
    assert alive(bench.server.url)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(bench.server.url) == []


async def test_a_wrong_password_and_one_that_may_only_read_are_refused(bench: Bench) -> None:
    own, commit = await bench.commit()
    assert kind(await read_remote_head(bench.remote("wrong"), "main")) == "unauthorized"
    assert (
        kind(await read_remote_head(replace(bench.remote(), secret=SecretStr("")), "main")) == "unauthorized"
    )
    bench.server.readers = {"bot": "reads"}
    bench.server.tokens = {"other": "x"}
    assert await read_remote_head(bench.remote("reads"), "main") == bench.first
    assert (
        kind(await push(own, bench.remote("reads"), "daiku/1-x", commit, "", default="main")) == "forbidden"
    )


async def test_what_the_server_forbids_by_a_rule_is_forbidden(bench: Bench) -> None:
    own, commit = await bench.commit()
    hook = bench.server.place("o/r") / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'error: corrupt no space left [rejected] connection' >&2\nexit 1\n")
    hook.chmod(0o755)
    assert kind(await push(own, bench.remote(), "daiku/1-x", commit, "", default="main")) == "forbidden"


def test_names_of_branches_are_gits_and_never_options() -> None:
    for name in ("daiku/1-x", "feature/日本", "a;rm -rf x".replace(" ", "-"), "$(touch-x)", "a.b"):
        assert is_branch(name)
    for name in (
        "-x",
        "",
        "HEAD",
        "@",
        "a..b",
        "a~1",
        "a.lock",
        "a/.b",
        "a/",
        "/a",
        "a@{1}",
        "refs/x",
        "a\\b",
        "a//b",
        "x" * 241,
    ):
        assert not is_branch(name)
