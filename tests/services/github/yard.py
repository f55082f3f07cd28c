"""A GitHub with people, an App and a repository whose tests fail, for tests from end to end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from github import Auth, Github
from github.Issue import Issue
from github.PullRequest import PullRequest
from github.Repository import Repository

from tests.services.git_server import GitServer, git_server, run_git
from tests.services.github.additions import Additions
from tests.services.github.described import fetch_descriptions
from tests.services.github.emulated import emulated
from tests.services.github.proxy import Asked, Fault, Proxy, running

LABEL = "coding agent"
OWNER, WORKER, TRIAGE, STRANGER, BOT = "owner", "worker", "triager", "stranger", "helper[bot]"
"""`worker` is the account whose token Daiku has; `triager` may set labels, not push."""
APP_ID, APP = 7, "daiku-app[bot]"
PEOPLE = (OWNER, WORKER, TRIAGE, STRANGER, BOT, APP)
NAME = "owner/calc"
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


def token_of(login: str) -> str:
    """The token of a person, of the form of GitHub's."""
    return "ghp_" + login.replace("[bot]", "Bot").ljust(36, "0")


@dataclass
class GitHubYard:
    """The forge of a test: `key` is the private key of its App."""

    proxy: Proxy
    added: Additions
    git: GitServer
    key: str
    met: list[Asked] = field(default_factory=list[Asked])
    """The requests that a fault befell."""

    @property
    def url(self) -> str:
        return self.proxy.url

    def client(self, login: str) -> Github:
        """PyGithub as `login`."""
        return Github(
            base_url=self.url,
            auth=Auth.Token(token_of(login)),
            retry=None,
            seconds_between_requests=0,
            seconds_between_writes=0,
        )

    def repository(self, login: str = OWNER, name: str = NAME) -> Repository:
        return self.client(login).get_repo(name)

    def create(self, name: str = NAME, files: dict[str, str] | None = None) -> None:
        """A repository of the owner's with one commit, to which the worker may push."""
        made = self.client(OWNER).get_user().create_repo(name.partition("/")[2], auto_init=True)
        self.git.create(name)
        self.git.commit(name, FILES if files is None else files)
        for login, role in ((WORKER, "push"), (APP, "push"), (TRIAGE, "triage")):
            made.add_to_collaborators(login, role)

    def issue(
        self,
        body: str = "add subtracts.",
        *,
        title: str = "Mend add",
        by: str = OWNER,
        labelled_by: str = OWNER,
    ) -> Issue:
        """An issue, labelled afterwards; by nobody where `labelled_by` is empty."""
        made = self.repository(by).create_issue(title, body)
        if labelled_by:
            self.repository(labelled_by).get_issue(made.number).add_to_labels(LABEL)
        return made

    def request(self, branch: str = "theirs", *, labelled_by: str = OWNER) -> PullRequest:
        """A request of the owner's from a branch with a commit of its own."""
        self.git.commit(NAME, {"notes.md": "to do\n"}, branch)
        made = self.repository().create_pull("main", branch, title="Mend add", body="add subtracts.")
        self.repository(labelled_by).get_issue(made.number).add_to_labels(LABEL)
        return made

    def branches(self, name: str = NAME) -> list[str]:
        return run_git(
            self.git.place(name), "for-each-ref", "--format=%(refname:short)", "refs/heads"
        ).splitlines()

    def files(self, branch: str, name: str = NAME) -> list[str]:
        return run_git(self.git.place(name), "ls-tree", "-r", "--name-only", branch).splitlines()

    def fail_each_change_once(self, fault: Fault) -> None:
        """Every change that the worker asks for meets `fault` when it is asked for the first time; `met` are those."""
        seen: set[tuple[str, str, bytes]] = set()
        lock = threading.Lock()

        def met(asked: Asked) -> Fault | None:
            key = (asked.method, asked.path, asked.body)
            with lock:
                if not asked.changes or asked.login not in (WORKER, APP) or key in seen:
                    return None
                seen.add(key)
                self.met.append(asked)
            return fault

        self.proxy.fault = met
        of_git = {
            "500": "500",
            "502": "502",
            "429": "429",
            "secondary": "429",
            "reset": "reset",
            "lost": "cut",
        }
        self.git.faults.append(("/git-receive-pack", of_git[fault]))  # pyright: ignore[reportArgumentType]  # it says any status

    def worker_asked(self) -> list[Asked]:
        """What the worker sent, questions left out."""
        return [each for each in self.proxy.received if each.changes and each.login in (WORKER, APP)]


@contextmanager
def github_yard(folder: Path) -> Generator[GitHubYard]:
    """The forge, for as long as the block runs; afterwards every request of the worker's must have been understood."""
    fetch_descriptions()
    folder.mkdir(parents=True, exist_ok=True)
    app: dict[str, Any] = {
        "app_id": APP_ID,
        "slug": APP.removesuffix("[bot]"),
        "name": "Daiku",
        "permissions": {"contents": "write"},
    }
    app["installations"] = [{"installation_id": 70, "account": OWNER}]
    seed = {
        # In emulate each person's token is their name: the proxy knows the tokens that people have.
        "tokens": {login: {"login": login, "scopes": ["repo", "user"]} for login in PEOPLE},
        "github": {"users": [{"login": login} for login in PEOPLE], "apps": [app]},
    }
    tokens = {token_of(login): login for login in PEOPLE}
    with emulated(seed) as program, git_server(folder) as git:
        git.tokens["x-access-token"] = token_of(WORKER)
        added = Additions(git, OWNER, APP, tokens)
        with running(Proxy(program.port, program.url, tokens, added)) as proxy:
            yard = GitHubYard(proxy, added, git, program.key)
            yard.create()
            yield yard
    assert proxy.wrong == []


def own_tests_pass(yard: GitHubYard, branch: str, folder: Path) -> bool:
    """Whether the repository's own tests pass on the branch as it is on the server."""
    run_git(folder.parent, "clone", "-q", "-b", branch, str(yard.git.place(NAME)), str(folder))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False).returncode == 0
