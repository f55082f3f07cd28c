"""`kill -9` at every call that changes something outside: the same end as without, and nothing twice."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

from daiku.store.postgres import PostgresDatabase
from daiku.store.sqlite import BUSY_SECONDS
from tests.cases import for_each
from tests.postgres import NewDatabase
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.server import Fault, running
from tests.work.gitlabflow import FILES, NAME, Desk, branches, completed, issue, planned, said, until
from tests.work.passing import let_time_pass

pytestmark = pytest.mark.slow

STEPS = ("one", "two", "three", "four", "five")
BRANCH = "daiku/1-mend-add"
MOST_STARTS = 80
TAKEN_OVER_SECONDS = 30
STOOD_STILL_SECONDS = 60
LEAST: Mapping[str, int] = MappingProxyType({"pushes": 7, "calls": 8})
"""What was kept of each step and taken away again, and the branch; labels, progress, the request, the last comment."""


def write(name: str) -> dict[str, Any]:
    return {"tool": "files/write", "args": {"path": f"{name}.txt", "content": f"{name}\n"}}


def step(number: int) -> tuple[dict[str, Any], ...]:
    """Replies that work a step: slow, so that what was wanted outside before is carried out. What was written so far is
    written once more, in case that it was lost with a machine, and the step is said to be completed again."""
    done = completed(number)
    again = [*map(write, STEPS[:number]), *done["calls"]]
    return (
        {"text": "Next.", "delay_ms": 800, "calls": [write(STEPS[number - 1])]},
        done,
        {"text": "Surely.", "calls": again},
    )


SCRIPT: tuple[dict[str, Any], ...] = (
    *planned(*STEPS),
    *(reply for number in range(1, len(STEPS) + 1) for reply in step(number)),
    *({"text": "All is written."},) * 4,  # whoever is told late that something was lost says it again
)


Kind = Literal["pushes", "calls"]


@dataclass
class Killer:
    """Kills the worker at each push, or each call of the forge, that asks for a change which nobody asked for before; of
    these in turn it happens nevertheless, or not. `applied`: whether the next one does."""

    kind: Kind
    applied: bool
    process: subprocess.Popen[str] | None = None
    seen: set[tuple[str, str, bytes]] = field(default_factory=set[tuple[str, str, bytes]])
    pushed: int = 0
    """Pushes that happened: one that is repeated has another commit, and is known by this."""

    def strike(self, method: str, path: str, body: bytes) -> Fault | None:
        is_push = path.endswith("/git-receive-pack")
        key = (method, path, b"%d" % self.pushed if is_push else body)
        if self.process is None or is_push != (self.kind == "pushes") or key in self.seen:
            self.pushed += is_push
            return None
        self.seen.add(key)
        self.process.send_signal(signal.SIGKILL)
        fault = Fault(applied=self.applied)
        self.pushed += is_push and self.applied
        self.applied = not self.applied
        return fault


@dataclass(frozen=True)
class End:
    """What people see when all is over."""

    branches: list[str]
    files: list[str]
    commits: int
    requests: list[tuple[str, str, bool, str]]
    labels: list[str]
    comments: list[str]


def end_of(desk: Desk) -> End:
    project = desk.yard.forge.state.projects[NAME]
    seen = desk.yard.client("dev").projects.get(NAME)
    requests = seen.mergerequests.list(get_all=True)
    return End(
        branches(project),
        project.git("ls-tree", "--name-only", BRANCH).splitlines(),
        int(project.git("rev-list", "--count", f"main..{BRANCH}")),
        [(r.source_branch, r.target_branch, r.draft, _as_always(r.description, desk.yard)) for r in requests],
        seen.issues.get(1).labels,
        [_as_always(body, desk.yard) for body in said(project.issues[1])],
    )


def _as_always(body: str, yard: GitLabYard) -> str:
    """A text without what may differ: where the forge is, the run's id, how many lines were written in all, what a
    model used that was asked again."""
    plain = re.sub(r"run_[0-9a-f]+| \(\+\d+ −\d+\)", "", body.replace(yard.forge.url, ""))
    lines = plain.splitlines()
    return "\n".join(line for line in lines if not line.startswith("**Used:**"))


@contextmanager
def yard_of(folder: Path) -> Generator[GitLabYard]:
    """A GitLab with one labelled issue."""
    with running() as forge:
        yard = GitLabYard(forge, folder)
        yard.project(NAME, FILES)
        issue(yard)
        yield yard


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> End:
    """The end of the item without a kill."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with yard_of(folder / "gitlab") as yard:
        desk = Desk(folder / "desk", yard)
        desk.script(*SCRIPT)
        assert desk.work()[0] == 0
        return end_of(desk)


def worked(killer: Killer, next_desk: Callable[[], Desk]) -> int:
    """Start workers until one ends by itself; how many were killed."""
    for number in range(MOST_STARTS):
        process = killer.process = next_desk().begin()
        out, err = process.communicate(timeout=120)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, (out, err)
            return number
    raise AssertionError("it does not end")


KINDS = pytest.mark.parametrize("kind", ["pushes", "calls"])  # a test each: they take minutes


@pytest.mark.slow(seconds=55)
@KINDS
def test_a_worker_that_is_killed_at_every_change_comes_to_the_same_end(
    undisturbed: End, tmp_path: Path, kind: Kind
) -> None:
    with yard_of(tmp_path / "gitlab") as yard:
        desk, killer = Desk(tmp_path / "desk", yard), Killer(kind, applied=False)
        desk.script(*SCRIPT)
        yard.forge.fault_of_change = killer.strike
        assert worked(killer, lambda: desk) >= LEAST[kind]
        assert end_of(desk) == undisturbed


def desks_of(folder: Path, yard: GitLabYard, url: str) -> tuple[Desk, Desk]:
    """Two machines that share nothing but the database and the forge."""
    environ = {"DAIKU_STORAGE__DATABASE_URL": url, "DAIKU_WORK__POLL_SECONDS": "1"}
    one, two = (Desk(folder / name, yard, environ) for name in ("one", "two"))
    for desk in (one, two):
        desk.script(*SCRIPT)
    return one, two


@pytest.mark.slow(seconds=50)
@KINDS
def test_machines_that_are_killed_in_turn_at_every_change_come_to_the_same_end(
    undisturbed: End, tmp_path: Path, postgres: NewDatabase, kind: Kind
) -> None:
    url = postgres()
    with yard_of(tmp_path / "gitlab") as yard:
        killer, turns = Killer(kind, applied=True), cycle(desks_of(tmp_path, yard, url))

        def next_desk() -> Desk:
            if killer.process is not None:
                let_time_pass(url)
            return next(turns)

        yard.forge.fault_of_change = killer.strike
        assert worked(killer, next_desk) >= LEAST[kind]
        assert end_of(next(turns)) == undisturbed


def is_at(yard: GitLabYard, step: int) -> bool:
    """Whether the plan is shown with so many steps done."""
    return any(f"{step}/5" in body for body in said(yard.forge.state.projects[NAME].issues[1]))


def labels_of(yard: GitLabYard) -> list[str]:
    return yard.forge.state.projects[NAME].issues[1].row["labels"]


def is_over(yard: GitLabYard) -> bool:
    return labels_of(yard) == ["coding agent done"]


def children(pid: int) -> list[int]:
    """The processes that this one started and that have not ended."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            found += [int(child) for child in task.read_text("ascii").split()]
    return found


def stop(process: subprocess.Popen[str], *, whole: bool) -> list[int]:
    """Stop the process, and if `whole` all that it started; which were stopped, parents first. A parent that stands
    still starts nothing more; a child may end by itself before its turn comes."""
    stopped = [process.pid]
    os.kill(process.pid, signal.SIGSTOP)
    for pid in stopped if whole else ():
        for child in children(pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
                stopped.append(child)
    return stopped


def stop_outside_of_writes(desk: Desk, process: subprocess.Popen[str], *, whole: bool) -> list[int]:
    """Stop a worker between two writes: a writer that is stopped would keep its lock on the database."""
    while True:
        stopped = stop(process, whole=whole)
        with closing(sqlite3.connect(desk.home / "daiku.db", timeout=0.2)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
                return stopped
            except sqlite3.OperationalError:
                go_on(stopped)
        time.sleep(0.05)


@contextmanager
def hold_database(desk: Desk) -> Generator[None]:
    """Hold the database's write lock for longer than a statement waits for it."""
    with closing(sqlite3.connect(desk.home / "daiku.db", timeout=30)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        released = time.monotonic() + BUSY_SECONDS + 2
        until(lambda: time.monotonic() > released)


def end_well(process: subprocess.Popen[str]) -> None:
    """Terminate a worker, and check that it exits without an error."""
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, (out, err)


def go_on(stopped: list[int]) -> None:
    """Let what was stopped go on; a child may have ended in the moment in which it was stopped."""
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def started() -> Iterator[Callable[[Desk], subprocess.Popen[str]]]:
    """Starts a worker that stays; it is ended after the test."""
    running_ones: list[subprocess.Popen[str]] = []

    def start(desk: Desk) -> subprocess.Popen[str]:
        running_ones.append(desk.start("worker", "--json", "--source", "gitlab"))
        return running_ones[-1]

    yield start
    for process in running_ones:
        process.kill()
        process.communicate()


Starts = Callable[[Desk], subprocess.Popen[str]]


@pytest.mark.slow(seconds=20)
def test_of_two_workers_of_one_home_the_other_goes_on_at_once_when_one_is_killed(
    undisturbed: End, tmp_path: Path, started: Starts
) -> None:
    with yard_of(tmp_path / "gitlab") as yard:
        desk = Desk(tmp_path / "desk", yard, {"DAIKU_WORK__POLL_SECONDS": "1"})
        desk.script(*SCRIPT)
        first = started(desk)
        until(lambda: is_at(yard, 1))
        started(desk)
        first.kill()
        until(lambda: is_over(yard))
        assert end_of(desk) == undisturbed


@pytest.mark.slow(seconds=35)
def test_what_a_killed_machine_had_under_way_another_one_ends(
    undisturbed: End, tmp_path: Path, postgres: NewDatabase, started: Starts
) -> None:
    url = postgres()
    with yard_of(tmp_path / "gitlab") as yard:
        one, two = desks_of(tmp_path, yard, url)
        first = started(one)
        until(lambda: is_at(yard, 2))
        started(two)
        killed = time.monotonic()
        first.kill()
        database = PostgresDatabase(url)
        until(lambda: database.first("SELECT fence FROM work_items")[0] == 2)
        assert time.monotonic() - killed < TAKEN_OVER_SECONDS
        database.close()
        until(lambda: is_over(yard))
        assert end_of(two) == undisturbed


@pytest.mark.slow(seconds=35)
@for_each("whole", [True, False], at_once=2)
def test_a_machine_that_stood_still_and_wakes_up_late_changes_nothing_more(
    undisturbed: End, tmp_path: Path, postgres: NewDatabase, started: Starts, *, whole: bool
) -> None:
    """`whole`: all of its processes stood still; else only the one that reaches the forge."""
    folder, url = tmp_path / str(whole), postgres()
    with yard_of(folder / "gitlab") as yard:
        one, two = desks_of(folder, yard, url)
        first = started(one)
        until(lambda: is_at(yard, 2))
        stopped = stop(first, whole=whole)
        if whole:  # else its agent's process goes on, and time passes for that too
            let_time_pass(url)
        second = started(two)
        until(lambda: is_over(yard))
        changes = len(yard.forge.calls("changes"))
        go_on(stopped)
        until(lambda: not children(first.pid))  # the agent's process has ended
        for process in (first, second):
            end_well(process)
        assert len(yard.forge.calls("changes")) == changes
        assert end_of(two) == undisturbed


@pytest.mark.slow(seconds=80)
def test_a_worker_that_stood_still_for_a_minute_beside_another_of_its_home_changes_nothing_twice(
    undisturbed: End, tmp_path: Path, started: Starts
) -> None:
    """SQLite. Where the agent's process stands still too, its session is its own until it wakes up or ends."""
    with yard_of(tmp_path / "whole") as whole, yard_of(tmp_path / "forge's") as partly:
        yards = {True: whole, False: partly}
        desks = {
            each: Desk(tmp_path / str(each), yard, {"DAIKU_WORK__POLL_SECONDS": "1"})
            for each, yard in yards.items()
        }
        for desk in desks.values():
            desk.script(*SCRIPT)
        workers = {each: [started(desk)] for each, desk in desks.items()}
        stopped: list[int] = []
        for each, yard in yards.items():
            until(lambda yard=yard: is_at(yard, 2))
            stopped += stop_outside_of_writes(desks[each], workers[each][0], whole=each)
            workers[each].append(started(desks[each]))
        awake = time.monotonic() + STOOD_STILL_SECONDS
        until(lambda: time.monotonic() > awake, most=STOOD_STILL_SECONDS + 10)
        go_on(stopped)
        for each, yard in yards.items():
            until(lambda yard=yard: is_over(yard))
            for process in workers[each]:
                end_well(process)
            assert end_of(desks[each]) == undisturbed


@pytest.mark.slow(seconds=75)
def test_a_database_that_another_program_holds_for_long_is_waited_for(
    undisturbed: End, tmp_path: Path, started: Starts
) -> None:
    """One worker starts meanwhile, and another waits for its model. Each step is kept."""
    with yard_of(tmp_path / "gitlab") as yard:
        desk = Desk(tmp_path / "desk", yard, {"DAIKU_WORK__POLL_SECONDS": "1"})
        thinks = {**planned(*STEPS)[0], "delay_ms": 1500 * BUSY_SECONDS}
        desk.script(thinks, *SCRIPT[1:])
        workers = [started(desk)]
        until(lambda: labels_of(yard) == ["coding agent processing"])
        with hold_database(desk):
            workers.append(started(desk))
        until(lambda: is_over(yard))
        for process in workers:
            end_well(process)
        assert end_of(desk) == undisturbed
