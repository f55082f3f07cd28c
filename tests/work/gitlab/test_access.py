"""How git reaches a project of GitLab; and the GitLab of tests, judged by python-gitlab and by git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gitlab.exceptions import GitlabAuthenticationError, GitlabGetError, GitlabUpdateError

from daiku.domain.items.forge import ForgeRefusal
from tests.work.gitlab.sources import TODO, given, key, kind_of, source_of
from tests.work.gitlabfake.fixture import GitLabYard

KEY = key("gitlab:group/name#1")


async def test_git_is_given_the_token_for_the_place_of_the_api(gitlab_forge: GitLabYard) -> None:
    url = f"{gitlab_forge.forge.url}/group/name.git"
    async with source_of(gitlab_forge) as source:
        access = given(await source.access(KEY, url))
    assert (access.url, access.user, access.secret.get_secret_value()) == (url, "oauth2", "glpat-bot")
    assert not access.local
    assert "glpat" not in repr(access)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/group/name.git",
        "http://localhost/group/name.git",
        "http://oauth2:x@{place}/group/name.git",
        "http://{place}@evil.example/group/name.git",
        "ssh://{place}/group/name.git",
        "file:///etc",
        "/etc",
        "http://[",
        "",
    ],
)
async def test_the_token_is_for_no_other_place(gitlab_forge: GitLabYard, url: str) -> None:
    place = gitlab_forge.forge.url.removeprefix("http://")
    async with source_of(gitlab_forge) as source:
        answer = await source.access(KEY, url.format(place=place))
    assert kind_of(answer) == "bad"


@pytest.mark.parametrize("path", ["/api/v4", "/api/v4/", ""])
async def test_the_address_of_the_api_may_be_written_in_several_ways(
    gitlab_forge: GitLabYard, path: str
) -> None:
    gitlab_forge.project("group/name")
    async with source_of(gitlab_forge, api_url=gitlab_forge.forge.url + path) as source:
        assert given(await source.find()) == ()


@pytest.mark.parametrize(
    ("api", "url", "given_out"),
    [
        ("https://gitlab.example/api/v4", "https://gitlab.example:8443/a/b.git", True),
        ("https://gitlab.example/sub/api/v4", "https://gitlab.example/sub/a/b.git", True),
        ("http://gitlab.example/api/v4", "https://gitlab.example/a/b.git", True),
        ("https://gitlab.example/api/v4", "http://gitlab.example/a/b.git", False),
        ("https://gitlab.example/api/v4", "https://gitlab.example.evil.example/a/b.git", False),
    ],
)
async def test_the_token_goes_in_the_clear_only_where_the_api_is_so(
    gitlab_forge: GitLabYard, api: str, url: str, given_out: bool
) -> None:
    async with source_of(gitlab_forge, api_url=api) as source:
        assert isinstance(await source.access(KEY, url), ForgeRefusal) is not given_out


async def test_the_token_is_sent_as_a_header_and_stands_in_no_address(gitlab_forge: GitLabYard) -> None:
    gitlab_forge.project("group/name")
    async with source_of(gitlab_forge) as source:
        assert isinstance(await source.read(KEY), ForgeRefusal)
    assert gitlab_forge.forge.heard
    for heard in gitlab_forge.forge.heard:
        assert "glpat" not in heard.path + heard.query
        assert heard.headers["PRIVATE-TOKEN"] == "glpat-bot"


def test_the_gitlab_of_tests_is_one_to_python_gitlab(gitlab_forge: GitLabYard) -> None:
    gitlab_forge.project("group/sub/name")
    project = gitlab_forge.client("dev").projects.get("group/sub/name")
    assert (project.default_branch, project.members_all.get(gitlab_forge.dev).access_level) == ("main", 40)
    made = project.issues.create({"title": "t", "labels": [TODO, "x"]})
    assert [event.action for event in made.resourcelabelevents.list(get_all=True)] == ["add", "add"]
    made.labels = ["x"]
    made.assignee_ids = [gitlab_forge.bot]
    made.state_event = "close"
    made.save()
    again = project.issues.get(made.iid)
    assert (again.labels, again.state, again.assignees[0]["username"]) == (["x"], "closed", "project_1_bot")
    note = made.notes.create({"body": "hello"})
    note.body = "changed"
    note.save()
    assert [each.body for each in made.notes.list(iterator=True)] == ["changed"]
    for number in range(45):
        project.issues.create({"title": str(number)})
    assert len(project.issues.list(get_all=True)) == 46
    stranger = gitlab_forge.client("stranger").projects.get("group/sub/name")
    assert stranger.issues.create({"title": "t", "labels": [TODO]}).labels == []
    with pytest.raises(GitlabUpdateError):
        stranger.issues.update(1, {"add_labels": TODO})
    with pytest.raises(GitlabGetError):
        project.issues.get(99)
    with pytest.raises(GitlabAuthenticationError):
        gitlab_forge.client("nobody").projects.get("group/sub/name")


def git(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    hands = {"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "HOME": str(folder)}
    person = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    return subprocess.run(
        ["git", *person, *args], cwd=folder, env=hands, capture_output=True, text=True, check=False
    )


def test_git_clones_and_pushes_over_http_as_a_developer_only(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    project = gitlab_forge.project("group/name", {"a.txt": "a", "b/c.txt": "c"})
    place = gitlab_forge.forge.url.removeprefix("http://")
    for name, may in (("bot", True), ("reporter", False)):
        tree = tmp_path / name
        url = f"http://oauth2:glpat-{name}@{place}/group/name.git"
        assert git(tmp_path, "clone", "-q", url, str(tree)).returncode == 0
        (tree / "a.txt").write_text(name)
        assert git(tree, "commit", "-qam", "second").returncode == 0
        pushed = git(tree, "push", "-q", "origin", f"HEAD:refs/heads/daiku/{name}")
        assert (pushed.returncode == 0) is may, pushed.stderr
        assert bool(project.commit_of(f"daiku/{name}")) is may
    assert git(tmp_path, "clone", "-q", f"http://{place}/group/name.git", "none").returncode != 0
