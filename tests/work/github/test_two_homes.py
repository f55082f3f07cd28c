"""Two machines that share nothing but the database and GitHub: what one began, the other ends."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import NewDatabase
from tests.services.git_server import run_git
from tests.services.github.yard import NAME, OWNER, WORKER, GitHubYard, token_of
from tests.work.github.desk import PROGRESS, Desk, labels, said
from tests.work.passing import let_time_pass

pytestmark = pytest.mark.slow


def written(name: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "text": name,
        "calls": [{"tool": "files/write", "args": {"path": name, "content": content}}],
        **more,
    }


def desks_of(folder: Path, yard: GitHubYard, url: str, *lines: dict[str, Any]) -> tuple[Desk, Desk]:
    environ = {"DAIKU_STORAGE__DATABASE_URL": url, "DAIKU_WORK__POLL_SECONDS": "1"}
    one, two = (Desk(folder / name, yard, dict(environ)) for name in ("one", "two"))
    for desk in (one, two):
        desk.script(*lines)
    return one, two


def refs(yard: GitHubYard) -> list[str]:
    return run_git(yard.git.place(NAME), "for-each-ref", "--format=%(refname)", "refs/daiku").splitlines()


def is_one_end(yard: GitHubYard, number: int, files: set[str]) -> None:
    """One request with these files, one progress comment, one label, nothing kept any more."""
    (pull,) = yard.repository().get_pulls(state="all")
    assert pull.draft
    assert files <= {each.filename for each in pull.get_files()} | set(yard.files(pull.head.ref))
    assert labels(yard, number) == ["coding agent done"]
    assert [each.startswith(PROGRESS) for each in said(yard, number)].count(True) == 1
    assert refs(yard) == []


def test_what_waits_for_an_answer_another_machine_goes_on_with(
    yard: GitHubYard, tmp_path: Path, postgres: NewDatabase
) -> None:
    """X.14: the machine that asked is gone, with its home; what it had written is there."""
    flow = ".github/workflows/ci.yml"
    lines = (written("one.txt", "one\n"), written(flow, "on: push\n"), {"text": "Done."})
    one, two = desks_of(tmp_path, yard, postgres(), *lines)
    issue = yard.issue()
    assert one.work()[1][-1]["state"] == "waiting"
    assert len(refs(yard)) == 1
    kept = one.kept()
    shutil.rmtree(one.root)
    yard.repository(OWNER).get_issue(issue.number).create_comment("allow")
    assert two.work()[1][-1]["state"] == "done", two.told
    is_one_end(yard, issue.number, {"one.txt", flow})
    assert token_of(WORKER).encode() not in kept + two.kept()


@pytest.mark.slow(seconds=15)
def test_what_a_killed_machine_had_under_way_another_one_ends(
    yard: GitHubYard, tmp_path: Path, postgres: NewDatabase
) -> None:
    plan = {"goal": "Both.", "steps": [{"name": "one"}, {"name": "two"}]}
    done = [
        {
            "text": "So.",
            "calls": [{"tool": "plan/update_step", "args": {"step_id": step, "status": "completed"}}],
        }
        for step in ("1", "2")
    ]
    lines = (
        {"text": "A plan.", "calls": [{"tool": "plan/propose", "args": plan}]},
        {"text": "It holds.", "calls": [{"tool": "plan/approve", "args": {}}]},
        written("one.txt", "one\n"),
        done[0],
        written("two.txt", "two\n", delay_ms=5000),
        done[1],
        *({"text": "All is written."},) * 3,
    )
    url = postgres()
    one, two = desks_of(tmp_path, yard, url, *lines)
    issue = yard.issue()
    first = one.begin()
    until = time.monotonic() + 60
    while not refs(yard):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    first.kill()
    first.communicate()
    shutil.rmtree(one.root, ignore_errors=True)
    let_time_pass(url)
    assert two.work()[1][-1]["state"] == "done", two.told
    is_one_end(yard, issue.number, {"one.txt", "two.txt"})
