"""All the way with a real repository: from a label on GitLab to a request that is ready, and its report."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.domain.items.item import ItemKey, MarkReady, OpenRequest, PostComment, SetState, ShowProgress
from daiku.items.source import CloneAccess
from tests.work.gitlab.sources import TODO, given, key, ours, source_of
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import Project, Thread

ASKED = '!f() { echo "username=$GIT_LOGIN"; echo "password=$GIT_SECRET"; }; f'


def git(folder: Path, access: CloneAccess, *args: str) -> str:
    """git with the login that the source gave, by environment only."""
    login = {
        "GIT_LOGIN": access.user,
        "GIT_SECRET": access.secret.get_secret_value(),
        "GIT_TERMINAL_PROMPT": "0",
    }
    command = [
        "git",
        "-c",
        f"credential.helper={ASKED}",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.invalid",
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **login}
    done = subprocess.run(
        [*command, *args], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def labelled(yard: GitLabYard, project: Project, item: ItemKey) -> Thread:
    """An issue, or a request from the branch `theirs`, which a developer labels by python-gitlab."""
    client = yard.client("dev").projects.get(project.path)
    if item.kind == "issue":
        made = client.issues.create({"title": "Add b", "description": "There must be a b."})
        client.issues.update(made.iid, {"add_labels": TODO})
        return project.issues[made.iid]
    project.git("branch", "theirs")
    row = {"source_branch": "theirs", "target_branch": "main", "title": "Draft: b", "description": "Add b."}
    request = client.mergerequests.create(row)
    client.mergerequests.update(request.iid, {"add_labels": TODO})
    return project.requests[request.iid]


@pytest.mark.parametrize("item", ["gitlab:group/sub/name#1", "gitlab:group/sub/name!1"])
async def test_a_label_becomes_a_ready_request(gitlab_forge: GitLabYard, tmp_path: Path, item: str) -> None:
    """R2.42, R2.43, R2.44, R2.45, R2.46: found, claimed, read, commented, finished; for issues and merge requests."""
    project = gitlab_forge.project("group/sub/name", {"a.txt": "a"})
    thread = labelled(gitlab_forge, project, key(item))
    async with source_of(gitlab_forge, "group/sub/name") as source:
        (found,) = given(await source.find())
        assert str(found.key) == item
        text = given(await source.read(found.key))
        assert (text.body_trusted, "b" in text.body) == (True, True)
        given(await source.apply(found.key, "1", SetState(state="processing"), again=False))
        given(await source.apply(found.key, "2", ShowProgress(text="- [ ] b"), again=False))
        access = given(await source.access(found.key, text.clone_url))
        branch = text.head or "daiku/1-add-b"
        tree = tmp_path / "tree"
        git(tmp_path, access, "clone", "-q", access.url, str(tree))
        assert "glpat" not in (tree / ".git/config").read_text()
        git(tree, access, "checkout", "-q", "-B", branch, f"origin/{text.head or text.base}")
        (tree / "b.txt").write_text("b")
        git(tree, access, "add", "-A")
        git(tree, access, "commit", "-q", "-m", "Add b")
        git(tree, access, "push", "-q", "origin", f"HEAD:refs/heads/{branch}")
        head = git(tree, access, "rev-parse", "HEAD")
        if not text.head:
            intent = OpenRequest(branch=branch, base=text.base, title=text.title, text="For #1.")
            given(await source.apply(found.key, "3", intent, again=False))
        gitlab_forge.forge.state.pipeline(project, head, "success", {})
        news = given(await source.news(found.key, text.claimed_at, head))
        assert (news.wanted, news.checks, news.said) == (True, "passed", ())
        given(await source.apply(found.key, "4", MarkReady(branch=branch), again=False))
        given(await source.apply(found.key, "5", ShowProgress(text="- [x] b"), again=False))
        given(await source.apply(found.key, "6", PostComment(text="Done."), again=False))
        given(await source.apply(found.key, "7", SetState(state="done"), again=False))
        assert given(await source.find()) == ()
    request = gitlab_forge.client("dev").projects.get("group/sub/name").mergerequests.get(1)
    assert (request.draft, request.sha, request.source_branch) == (False, head, branch)
    assert thread.row["labels"] == ["coding agent done"]
    assert [note.splitlines()[0] for note in ours(thread)] == ["<!-- daiku:progress -->", "Done."]
