"""From a label on GitLab to a linked draft with green tests: real processes, real git, python-gitlab as the judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabflow import (
    FILES,
    MEND,
    NAME,
    Desk,
    branches,
    completed,
    is_green,
    issue,
    merge_request,
    planned,
    said,
)

pytestmark = pytest.mark.slow

PLANNED = (*planned("Read it", "Mend it"), completed(1), MEND[0], completed(2), MEND[1])


@pytest.fixture
def desk(gitlab_forge: GitLabYard, tmp_path: Path) -> Desk:
    gitlab_forge.project(NAME, FILES)
    made = Desk(tmp_path / "desk", gitlab_forge)
    made.script(*PLANNED)
    return made


def test_a_labelled_issue_becomes_a_linked_draft_whose_is_green(desk: Desk, tmp_path: Path) -> None:
    thread = issue(desk.yard)
    project = desk.yard.forge.state.projects[NAME]
    before = project.commit_of("main")
    code, told, err = desk.work()
    assert (code, [each["state"] for each in told]) == (0, ["done"]), f"{told} {err}"
    assert branches(project) == ["daiku/1-mend-add", "main"]
    assert project.commit_of("main") == before
    assert is_green(project, "daiku/1-mend-add", tmp_path / "clone")
    seen = desk.yard.client("dev").projects.get(NAME)
    (request,) = seen.mergerequests.list(get_all=True)
    assert (request.draft, request.source_branch, request.target_branch) == (True, "daiku/1-mend-add", "main")
    assert "Closes #1" in request.description
    assert seen.issues.get(1).labels == ["coding agent done"]
    progress, last = said(thread)
    assert "2/2" in progress or "100" in progress
    assert request.web_url in last


def test_a_labelled_merge_request_is_worked_on_its_own_branch(desk: Desk, tmp_path: Path) -> None:
    project = desk.yard.forge.state.projects[NAME]
    thread = merge_request(desk.yard, project)
    code, told, err = desk.work()
    assert (code, [each["state"] for each in told]) == (0, ["done"]), f"{told} {err}"
    assert branches(project) == ["main", "theirs"]
    assert is_green(project, "theirs", tmp_path / "clone")
    (request,) = desk.yard.client("dev").projects.get(NAME).mergerequests.list(get_all=True)
    assert request.labels == ["coding agent done"]
    assert len(said(thread)) == 2
