"""A GitLab with people, and projects whose repositories are real, for tests from end to end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gitlab import Gitlab

from tests.work.gitlabfake.server import GitLabForge, running
from tests.work.gitlabfake.state import DEVELOPER, MAINTAINER, REPORTER, Project


class GitLabYard:
    """`bot` is the account of the worker, a developer; `dev` is a person who may push; `reporter` may set labels but not
    push; `stranger` is no member. Each one's token is `glpat-NAME`."""

    def __init__(self, forge: GitLabForge, folder: Path) -> None:
        self.forge = forge
        self._folder = folder
        add = forge.state.user
        self.bot, self.dev = add("project_1_bot", bot=True, token="glpat-bot"), add("dev")
        self.reporter, self.stranger = add("reporter"), add("stranger")

    @property
    def api_url(self) -> str:
        return self.forge.api_url

    def project(self, path: str, files: dict[str, str] | None = None) -> Project:
        """A project; with `files` its repository is a real one, with one commit of them on `main`."""
        members = {self.bot: DEVELOPER, self.dev: MAINTAINER, self.reporter: REPORTER}
        repository = None if files is None else self._repository(path, files)
        return self.forge.state.project(path, members, repository)

    def client(self, name: str) -> Gitlab:
        """python-gitlab as the account `name`."""
        return Gitlab(self.forge.url, private_token=f"glpat-{name}")

    def _repository(self, path: str, files: dict[str, str]) -> Path:
        bare, tree = self._folder / f"{path}.git", self._folder / "trees" / path
        tree.mkdir(parents=True)
        _git(tree, "init", "-q", "-b", "main")
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, "utf-8")
        _git(tree, "add", "-A")
        _git(tree, "commit", "-q", "-m", "first")
        _git(tree, "clone", "-q", "--bare", str(tree), str(bare))
        _git(bare, "config", "http.receivepack", "true")
        return bare


def _git(folder: Path, *args: str) -> None:
    person = ["-c", "user.name=Dev", "-c", "user.email=dev@example.invalid"]
    subprocess.run(["git", *person, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def gitlab_forge(tmp_path: Path) -> Iterator[GitLabYard]:
    """A running GitLab of this test's own."""
    with running() as forge:
        yield GitLabYard(forge, tmp_path / "gitlab")
