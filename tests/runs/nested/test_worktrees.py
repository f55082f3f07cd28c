"""Independent work side by side in git worktrees: brought back in order, done again on conflict, nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import (
    EPHEMERAL,
    CheckpointEvent,
    HandoffEnd,
    HandoffStart,
    Notice,
    PlanEvent,
    ToolCallEvent,
)
from daiku.domain.runs import RunLimits, RunResult
from daiku.domain.work.handovers import EditsMade
from daiku.domain.work.plans import Plan
from daiku.models.table import LLMSettings
from daiku.run.nested.worktrees import sweep
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.store.lock import SessionLock
from daiku.workspace.disk import DiskWorkspace
from tests.runs.test_kill import killed_in_child

pytestmark = pytest.mark.slow  # real git

Json = dict[str, Any]
END = "All is done."


def git(root: Path, *argv: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Me", "-c", "user.email=me@localhost", *argv],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return done.stdout


def write(path: str, content: str) -> Json:
    return {"tool": "files/write", "args": {"path": path, "content": content}}


def edit(path: str, search: str, text: str) -> Json:
    return {"tool": "files/edit", "args": {"path": path, "edits": [{"search": search, "replace": text}]}}


def shell(command: str) -> Json:
    return {"tool": "shell/run", "args": {"command": command}}


def ask_for(*requests: str, agent: str = "runner") -> Json:
    listed = [{"agent": agent, "request": r} for r in requests]
    return {"calls": [{"tool": "agent/parallel", "args": {"requests": listed}}], "agent": "You work inside"}


class World:
    """A repository and a home; `lines` is what the model plays."""

    request = RunRequest("go", approvals="all")

    def __init__(self, folder: Path, *lines: Json) -> None:
        self.home, self.root = folder / "home", folder / "project"
        self.root.mkdir(parents=True)
        text = "".join(f"line {n}\n" for n in range(1, 31))
        (self.root / "a.txt").write_text(text)
        (self.root / "b.txt").write_text("b\n")
        (self.root / ".gitignore").write_text("built/\n")
        git(self.root, "init", "-q", "-b", "main")
        git(self.root, "add", "--all")
        git(self.root, "commit", "-q", "-m", "First")
        path = folder / "script.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines))
        self.config = Config(
            llm=LLMSettings(model=f"scripted/{path}"),
            approvals=ApprovalSettings(command="allow"),
            sandbox=SandboxSettings(mode="off"),
        )
        self.seen: list[Chunk] = []

    async def run(self, *, die_at: int = 0) -> RunResult:
        """The whole run; with `die_at` the process kills itself at that durable event."""
        app = build(self.config, workspace=DiskWorkspace((self.root,)), home=self.home)
        durable = 0

        def listen(chunk: Chunk) -> None:
            nonlocal durable
            self.seen.append(chunk)
            durable += chunk.type not in EPHEMERAL
            if durable == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        result = await app.runs.run(self.request, listen)
        assert (await replay(app.journal.chunks(result.session_id))).difference is None
        await app.aclose()
        return result

    async def resume(self) -> RunResult:
        app = build(self.config, workspace=DiskWorkspace((self.root,)), home=self.home)
        session = app.journal.list_sessions()[0]
        run = app.journal.chunks(session.session_id)[0].run
        result = await app.runs.resume(run, self.seen.append, approvals="all")
        assert (await replay(app.journal.chunks(session.session_id))).difference is None
        await app.aclose()
        return result

    def events(self, kind: type[Any]) -> list[Any]:
        return [c.event for c in self.seen if isinstance(c.event, kind)]

    def left_behind(self) -> list[str]:
        """What there still is of worktrees, in the home and in the repository."""
        places = self.home / "worktrees"
        found = [p.name for p in places.iterdir()] if places.exists() else []
        worktrees = git(self.root, "worktree", "list", "--porcelain").count("worktree ")
        branches = git(self.root, "branch", "--list").splitlines()
        return [*found, *(["worktree"] * (worktrees - 1)), *branches[1:]]


def two(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    """Two pieces of work, each with its calls in one reply and then a word."""
    return [
        ask_for("do one", "do two"),
        {"calls": list(first), "when": "do one", "agent": "now you run"},
        {"text": "One is done.", "agent": "now you run", "when": "marker one"},
        {"calls": list(second), "when": "do two", "agent": "now you run"},
        {"text": "Two is done.", "agent": "now you run", "when": "marker two"},
        {"text": END, "agent": "You work inside"},
    ]


ONE = [edit("a.txt", "line 2\n", "line two\n"), shell("pwd && touch untracked-one.txt && echo marker one")]
TWO = [
    edit("a.txt", "line 29\n", "line 29!\n"),
    shell("pwd && rm b.txt && mkdir -p built && touch built/x && echo marker two"),
]


async def test_two_pieces_are_done_in_copies_and_come_back_as_one_patch_each(tmp_path: Path) -> None:
    world = World(tmp_path, *two(ONE, TWO))
    result = await world.run()
    assert (result.status, result.text) == ("completed", END), result
    assert [n.text for n in world.events(Notice)] == []
    text = (world.root / "a.txt").read_text()
    assert "line two\n" in text
    assert "line 29!\n" in text
    assert (world.root / "untracked-one.txt").exists()
    assert not (world.root / "b.txt").exists()
    assert not (world.root / "built").exists(), "what git ignores stays in the copy"
    pwds = [c.data for c in world.seen if c.type == "tool_response" and "marker" in c.data]
    assert all(str(world.home / "worktrees") in data for data in pwds)
    patches = [e for e in world.events(ToolCallEvent) if e.tool == "files/patch"]
    assert len(patches) == 2
    assert "line two" in patches[0].args["patch"]
    kept = [c for c in world.seen if isinstance(c.event, CheckpointEvent) and c.agent == "worktree"]
    assert len(kept) == 2
    assert world.left_behind() == []
    assert git(world.root, "log", "--oneline").count("\n") == 1
    assert git(world.root, "diff", "--cached", "--name-only") == "", "the person's index is as it was"
    ended = {e.result: e for e in world.events(HandoffEnd) if e.to == "runner"}
    assert set(ended) == {"One is done.", "Two is done."}, "in whichever order they end"
    assert ended["One is done."].deeds.files == ()


async def test_a_conflict_is_done_again_on_top_of_what_is_there(tmp_path: Path) -> None:
    one = [edit("a.txt", "line 5\n", "line five\n"), shell("echo marker one")]
    two_ = [shell("sed -i 's/^line \\(5\\|five\\)$/& (two)/' a.txt; echo marker two")]
    world = World(tmp_path, *two(one, two_))
    result = await world.run()
    assert (result.status, result.text) == ("completed", END), result
    assert "line five (two)\n" in (world.root / "a.txt").read_text()
    notices = [n.text for n in world.events(Notice)]
    assert any("done again on top of the others" in n for n in notices)
    assert world.left_behind() == []


async def test_binary_files_are_made_again_here(tmp_path: Path) -> None:
    two_ = [shell("printf 'a\\0b' > x.bin; echo marker two")]
    world = World(tmp_path, *two(ONE, two_))
    assert (await world.run()).status == "completed"
    assert (world.root / "x.bin").read_bytes() == b"a\0b"
    assert world.left_behind() == []


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda root: (root / "b.txt").write_text("mine\n"), "there are uncommitted changes (b.txt)"),
        (lambda root: (root / "new.txt").write_text("mine\n"), "there are uncommitted changes (new.txt)"),
        (
            lambda root: [
                (root / ".gitmodules").write_text(""),
                git(root, "add", "-A"),
                git(root, "commit", "-qm", "x"),
            ],
            "submodules",
        ),
        (lambda root: shutil.rmtree(root / ".git"), "not a usable git repository"),
    ],
)
async def test_where_no_copies_can_be_made_it_is_one_after_the_other_and_said(
    tmp_path: Path, spoil: Any, why: str
) -> None:
    world = World(tmp_path, *two(ONE, TWO))
    spoil(world.root)
    assert (await world.run()).status == "completed"
    assert "line two\n" in (world.root / "a.txt").read_text()
    notices = [n.text for n in world.events(Notice)]
    assert any("One after the other" in n and why in n for n in notices), notices
    assert not [e for e in world.events(ToolCallEvent) if e.tool == "files/patch"]


async def test_what_daiku_changed_itself_is_part_of_the_copies(tmp_path: Path) -> None:
    before = {"calls": [edit("a.txt", "line 10\n", "line ten\n")], "agent": "You work inside"}
    one = [shell("sed -i 's/^line ten$/line TEN/' a.txt && echo marker one")]
    world = World(tmp_path, before, *two(one, TWO))
    assert (await world.run()).status == "completed"
    assert "line TEN\n" in (world.root / "a.txt").read_text()
    assert len([e for e in world.events(ToolCallEvent) if e.tool == "files/patch"]) == 2
    assert git(world.root, "stash", "list") == ""
    assert world.left_behind() == []


async def test_a_copy_is_a_jail(tmp_path: Path) -> None:
    one = [write(str(tmp_path / "project/b.txt"), "out\n"), shell("echo marker one")]
    world = World(tmp_path, *two(one, [*TWO[:1], shell("echo marker two")]))
    assert (await world.run()).status == "completed"
    assert (world.root / "b.txt").read_text() == "b\n"
    assert any("outside the workspace" in c.data for c in world.seen if c.type == "tool_response")


async def test_cancelling_leaves_no_copy_behind(tmp_path: Path) -> None:
    world = World(tmp_path, *two([shell("sleep 30")], [shell("sleep 30")]))
    app = build(world.config, workspace=DiskWorkspace((world.root,)), home=world.home)
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), world.seen.append))
    async with asyncio.timeout(20):
        while len([e for e in world.events(ToolCallEvent) if e.tool == "shell/run"]) < 2:
            await asyncio.sleep(0.01)
    await app.runs.cancel(world.seen[0].run)
    assert (await task).status == "cancelled"
    assert [c.type for c in world.seen].count("run_finished") == 3
    await app.aclose()
    assert world.left_behind() == []


@pytest.mark.parametrize(("seconds", "gone"), [(0.4, True), (4, False)])
def test_what_a_killed_process_left_running_in_a_copy_is_waited_for(
    tmp_path: Path, seconds: float, gone: bool
) -> None:
    world = World(tmp_path)
    folder = world.home / "worktrees"
    place = folder / "wt_1"
    place.mkdir(parents=True)
    place.with_suffix(".of").write_text(str(world.root))
    busy = """
import contextlib, pathlib, sys, time
end = time.time() + float(sys.argv[2])
while time.time() < end:
    with contextlib.suppress(OSError):
        p = pathlib.Path(sys.argv[1]) / "deep"
        p.mkdir(parents=True, exist_ok=True)
        (p / "a").touch()
"""
    with subprocess.Popen(
        [sys.executable, "-c", busy, str(place), str(seconds)], stderr=subprocess.DEVNULL
    ) as orphan:
        while not (place / "deep").exists():
            time.sleep(0.01)
        sweep(folder)
        assert gone is not place.with_suffix(".of").exists(), (
            "what is still there is noted for the next start"
        )
        orphan.kill()
    sweep(folder)
    assert world.left_behind() == []


@pytest.mark.slow(seconds=30)
def test_killed_anywhere_the_work_is_done_once_here_and_no_copy_is_left(tmp_path: Path) -> None:
    killed = 0
    for die_at in count(3, 3):
        world = World(tmp_path / str(die_at), *two(ONE, TWO))
        if not killed_in_child(world, die_at):
            break
        killed += 1
        result = asyncio.run(world.resume())
        assert (result.status, result.text) == ("completed", END), die_at
        assert world.left_behind() == [], die_at
        text = (world.root / "a.txt").read_text()
        interrupted = "was interrupted" in "".join(c.data for c in world.seen)
        assert interrupted or text.count("line two\n") == text.count("line 29!\n") == 1, die_at
    assert killed > 20


CODER, RUNNER = "now you write code", "now you run commands"
THREE = [
    {"name": "Make one", "description": "First", "acceptance": ["grep -q one one.txt"]},
    {"name": "Make two", "description": "Second", "acceptance": ["grep -q two two.txt"]},
    {
        "name": "Join",
        "description": "Third",
        "depends_on": ["1", "2"],
        "acceptance": ["grep -q both both.txt"],
    },
]


def team(*coders: Json) -> list[Json]:
    """What the models of a team play that works three steps, of which two do not wait for one another."""
    return [
        {
            "calls": [{"tool": "plan/propose", "args": {"goal": "Join", "steps": THREE}}],
            "agent": "now you plan",
        },
        {"text": "That is the plan.", "agent": "now you plan"},
        {"text": '{"queries": [], "ask_user": ""}', "agent": "now you research"},
        *({**line, "agent": CODER} for line in coders),
        {"text": '{"commands": []}', "agent": RUNNER},
        {"text": json.dumps({"text": "All is done.", "claims": []}), "agent": "now you report"},
    ]


def at(number: int) -> str:
    return f"later one:\nStep {number}:"


CODERS = (
    {"calls": [write("one.txt", "one\n")], "when": at(1)},
    {"text": "Wrote one.", "when": "Made one.txt"},
    {"calls": [write("two.txt", "two\n")], "when": at(2)},
    {"text": "Wrote two.", "when": "Made two.txt"},
    {"calls": [write("both.txt", "both\n")], "when": at(3)},
    {"text": "Wrote both.", "when": "Made both.txt"},
)


class TeamWorld(World):
    request = RunRequest("join", agent="team", approvals="all")


async def worked(world: World) -> tuple[RunResult, Plan]:
    result = await world.run()
    return result, world.events(PlanEvent)[-1].plan


async def test_the_team_has_steps_coded_at_once_that_do_not_wait_for_one_another(tmp_path: Path) -> None:
    world = TeamWorld(tmp_path, *team(*CODERS))
    result, plan = await worked(world)
    assert result.status == "completed", result
    assert [s.status for s in plan.steps] == ["completed"] * 3
    assert [(world.root / f"{name}.txt").read_text() for name in ("one", "two", "both")] == [
        "one\n",
        "two\n",
        "both\n",
    ]
    handed = [e.to for e in world.events(HandoffStart)]
    assert handed[:6] == ["planner", "researcher", "coder", "coder", "worktree", "worktree"]
    assert handed.count("coder") == 3
    checks = [e.args["command"] for e in world.events(ToolCallEvent) if e.tool == "shell/run"]
    first, second, third = ("grep -q one one.txt", "grep -q two two.txt", "grep -q both both.txt")
    assert checks[:6] == [first, second, first, second, third, third]  # each before its step and after it
    assert world.left_behind() == []


async def test_without_git_the_team_works_step_by_step_and_says_why(tmp_path: Path) -> None:
    world = TeamWorld(tmp_path, *team(*CODERS))
    shutil.rmtree(world.root / ".git")
    result, plan = await worked(world)
    assert result.status == "completed", result
    assert [s.status for s in plan.steps] == ["completed"] * 3
    handed = [e.to for e in world.events(HandoffStart)]
    assert handed[:4] == ["planner", "researcher", "coder", "runner"]
    notices = [n.text for n in world.events(Notice) if "One after the other" in n.text]
    assert len(notices) == 1, "said once"


def looking_again(name: str) -> tuple[Json, Json, Json]:
    """What a coder plays whose write was cut off by a kill: it writes once more, and the same text is no edit."""
    return (
        {"calls": [write(f"{name}.txt", f"{name}\n")], "when": "was interrupted"},
        {"text": f"Wrote {name}.", "when": "already"},
        {"text": f"Wrote {name}.", "when": f"Made {name}.txt"},
    )


@pytest.mark.slow(seconds=50)
def test_killed_anywhere_the_team_goes_on_and_no_copy_is_left(tmp_path: Path) -> None:
    coders = [
        line
        for first, last, name in zip(CODERS[::2], CODERS[1::2], ("one", "two", "both"), strict=True)
        for line in (first, last, *looking_again(name))
    ]
    killed = 0
    for die_at in count(20, 7):
        world = TeamWorld(tmp_path / str(die_at), *team(*coders))
        if not killed_in_child(world, die_at):
            break
        killed += 1
        result = asyncio.run(world.resume())
        assert result.status == "completed", (die_at, result)
        assert world.left_behind() == [], die_at
        names = ("one", "two", "both")
        assert [(world.root / f"{n}.txt").read_text() for n in names] == [f"{n}\n" for n in names], die_at
    assert killed > 25


async def test_a_project_inside_a_larger_repository_is_worked_in_its_folder(tmp_path: Path) -> None:
    world = World(tmp_path, *two(ONE, TWO))
    whole = world.root
    (whole / "app").mkdir()
    for name in ("a.txt", "b.txt", ".gitignore"):
        (whole / name).rename(whole / "app" / name)
    git(whole, "add", "--all")
    git(whole, "commit", "-q", "-m", "Into a folder")
    world.root = whole / "app"
    assert (await world.run()).status == "completed"
    assert len([e for e in world.events(ToolCallEvent) if e.tool == "files/patch"]) == 2
    text = (world.root / "a.txt").read_text()
    assert "line two\n" in text
    assert "line 29!\n" in text
    assert not (world.root / "b.txt").exists()
    assert world.left_behind() == []


def test_only_copies_that_nobody_uses_are_taken_away(tmp_path: Path) -> None:
    folder, other = tmp_path / "worktrees", tmp_path / "other"
    other.mkdir()
    place = folder / "wt_1"
    (place / "deep").mkdir(parents=True)
    (folder / "wt_1.of").write_text(str(other), "utf-8")
    (folder / "strange").mkdir()
    lock = SessionLock(folder / "wt_1.lock")
    assert lock.acquire()
    sweep(folder)
    assert place.exists(), "somebody works there"
    lock.release()
    sweep(folder)
    assert [p.name for p in folder.iterdir()] == ["strange"]
    assert other.exists()
    sweep(tmp_path / "nowhere")


FOUR = [
    {"name": f"Write {n}", "acceptance": [f"grep -q {n} {n}.txt"]} for n in ("one", "two", "three", "four")
]


@pytest.mark.parametrize("tokens", [12_000, 16_000, 20_000, 25_000, 40_000, 60_000])
async def test_four_coders_at_once_share_a_budget_of_tokens_and_nothing_paid_is_lost(
    tmp_path: Path, tokens: int
) -> None:
    names = ("one", "two", "three", "four")
    coders = [
        line
        for number, name in enumerate(names, 1)
        for line in (
            {"calls": [write(f"{name}.txt", f"{name}\n")], "when": at(number)},
            {"text": f"Wrote {name}.", "when": f"Made {name}.txt"},
        )
    ]
    plan = {"tool": "plan/propose", "args": {"goal": "Join", "steps": FOUR}}
    world = TeamWorld(tmp_path, {"calls": [plan], "agent": "now you plan"}, *team(*coders)[1:])
    world.request = RunRequest("join", agent="team", approvals="all", limits=RunLimits(max_tokens=tokens))
    result, plan_now = await worked(world)
    texts = [e.text for e in world.events(Notice)]
    assert not [text for text in texts if "do not fit" in text or "done again" in text]
    paid = [e for e in world.events(HandoffEnd) if e.to == "coder" and e.status == "completed"]
    written = [name for name in names if (world.root / f"{name}.txt").exists()]
    assert len(written) == len(
        {f.path for e in paid if isinstance(e.handover, EditsMade) for f in e.handover.files}
    )
    assert (result.status == "completed") == (tokens >= 40_000)
    done = [name for name, step in zip(names, plan_now.steps, strict=True) if step.status == "completed"]
    assert done == written, "what was paid for and passes its checks is done, whatever is left to spend"
    assert world.left_behind() == []
