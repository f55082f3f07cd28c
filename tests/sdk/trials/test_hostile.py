"""Trials of projects that mean harm: nothing of theirs runs outside the copy, and nothing outside it changes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.domain.trials import Case, Check
from daiku.sdk.trials import trial
from tests.attacks.victim import snapshot
from tests.conftest import ROOT
from tests.sdk.trials.project import MENDS, Project, call, project

DONE = {"text": "Done."}


@pytest.fixture
def place() -> Iterator[Project]:
    with project() as made:
        yield made


def plant(place: Project, name: str) -> Path:
    """A program that leaves a mark beside the person's folder when it runs, and the mark."""
    program, mark = place.base / name, place.base / f"{name}-ran"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n", "utf-8")
    program.chmod(0o755)
    return mark


def checked_by(case: Case, command: str) -> Case:
    return case.model_copy(update={"checks": (Check(command=command),)})


def test_no_hook_and_no_file_monitor_of_the_repository_runs(place: Project) -> None:
    marks = [plant(place, name) for name in ("hook", "monitor")]
    hooks = place.folder / ".git" / "hooks"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-commit"):
        (hooks / name).write_text((place.base / "hook").read_text("utf-8"))
        (hooks / name).chmod(0o755)
    place.git("config", "core.fsmonitor", str(place.base / "monitor"))
    place.mended()
    assert place.tried(place.case(), MENDS, DONE).passed is True
    assert not [mark for mark in marks if mark.exists()]


def test_no_filter_of_the_repository_runs_and_files_made_by_one_are_not_tried(place: Project) -> None:
    mark = plant(place, "filter")
    place.write(__gitattributes="*.py filter=evil\n")
    place.commit()
    for what in ("clean", "smudge"):
        place.git("config", f"filter.evil.{what}", str(place.base / "filter"))
    place.mended()
    tried = place.tried(place.case(), MENDS, DONE)
    assert (tried.passed, tried.why.id) == (None, "trials.filters")
    assert not mark.exists()


def test_a_check_reaches_no_network(place: Project) -> None:
    place.mended()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        command = f"echo hello > /dev/tcp/127.0.0.1/{port}"
        case = checked_by(place.case(), f"bash -c '{command}' || bash -c '! {command}' && exit 3")
        tried = place.tried(case, MENDS, DONE)
        with pytest.raises(TimeoutError):
            server.accept()
    assert tried.passed is False


def test_a_check_and_a_run_write_nothing_outside_the_copy(place: Project) -> None:
    place.mended()
    before = snapshot(place.base / "person")
    beyond = f"{place.folder}/planted"
    case = checked_by(place.case(), f"echo x > {beyond}; echo x > ../../planted; grep -q 'a + b' calc.py")
    assert place.tried(case, call(f"echo x > {beyond}"), MENDS, DONE).passed is True
    assert snapshot(place.base / "person") == before
    assert not [each for each in place.base.rglob("planted") if each.exists()]


def test_a_link_that_leads_out_leads_nowhere_in_a_trial(place: Project) -> None:
    precious = place.base / "person" / "precious.txt"
    precious.write_text("precious\n", "utf-8")
    (place.folder / "way-out").symlink_to(precious)
    place.commit()
    (place.folder / "other-way").symlink_to(precious)
    place.mended()
    case = place.case()
    assert [(each.path, each.kind) for each in case.start.changed] == [("other-way", "link")]
    place.tried(
        checked_by(case, "echo x > way-out; echo x > other-way; false"), call("echo x > way-out"), DONE
    )
    assert precious.read_text("utf-8") == "precious\n"


def test_an_endless_check_is_ended_with_all_that_it_started(
    place: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mended()
    monkeypatch.setattr(trial, "CHECK_SECONDS", 1.0)
    mark = f"7{os.getpid()}"
    tried = place.tried(checked_by(place.case(), f"sleep {mark} & sleep {mark}"), MENDS, DONE)
    assert (tried.passed, [each.exit_code for each in tried.checks]) == (False, [124])
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"sleep {mark}" not in running


KILLED = """
import sys
from pathlib import Path
from daiku.domain.trials import Case
from tests.sdk.trials.project import Project, call
place = Project(Path(sys.argv[1]), {})
place.tried(Case.model_validate_json(sys.argv[2]), call("sleep 600"), {"text": "Done."})
"""


def test_what_a_killed_trial_leaves_is_taken_away_at_the_next_start(place: Project) -> None:
    place.mended()
    case = place.case()
    before = snapshot(place.folder)
    argv = [sys.executable, "-c", KILLED, str(place.base), case.model_dump_json()]
    process = subprocess.Popen(argv, cwd=ROOT)
    copies = place.home / "trials"
    until = time.monotonic() + 60
    while not list(copies.glob("tr_*/project/calc.py")) and time.monotonic() < until:
        process.poll()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(copies.glob("tr_*"))
    place.record(DONE)
    assert not list(copies.iterdir())
    assert snapshot(place.folder) == before


def test_a_trial_sees_nothing_of_daikus_own_things(place: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies lie below Daiku's home, whose database holds every conversation."""
    monkeypatch.setenv("DAIKU_HOME", str(place.home))
    place.mended()
    hidden = f"test ! -e {place.home}/daiku.db && test ! -e {place.home}/starts"
    case = checked_by(place.case(), f"{hidden} && grep -q 'a + b' calc.py")
    assert place.tried(case, MENDS, DONE).passed is True
