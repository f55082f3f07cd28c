"""Reach of commands: which may change files of the workspace, and which may have effects elsewhere."""

from __future__ import annotations

from daiku.core.run.command_reach import acts_only_on_files, may_change_files
from tests.cases import for_each

NEVER = (
    "ls",
    "git status",
    "pytest -q",
    "pytest -q; echo done",
    "cat a | wc -l",
    "make test",
    "pytest > /dev/null",
    "mypy .",
)
MAY = (
    "sed -i s/a/b/ x", "touch x", "ruff format", "ruff check --fix .", "pytest; sed -i s/a/b/ x", "pytest > out.txt", "echo x > y",
    "python3 fix.py", "$(cat x)", "git checkout x", "prettier --write .",
)  # fmt: skip
ON_FILES = (
    "sed -i s/a/b/ x", "sed -i '/x/d' a", "perl -pi -e s/a/b/ x", "ruff format", "prettier --write .",
    "git checkout x", "git restore x", "git apply p",
    "touch x", "cp a b", "bash -c 'sed -i s/a/b/ x'", "cat > x <<'E'\n1\nE", "echo x > /dev/null", "/usr/bin/sed -i s/a/b/ x",
    "sort x > /tmp/y && mv /tmp/y x", "patch -p1 < x.diff",
)  # fmt: skip
ELSEWHERE_UNCONFINED = (
    "./deploy.sh", "bash deploy.sh", "python3 deploy.py", "make deploy", "npm run release", "npm install", "pip install x",
    "docker build .", "systemctl restart x", "kubectl apply -f x", "cp a /etc/x", "echo x > ~/.bashrc", "cp a ../b", "rm -r $HOME/x",
    "psql -c 'insert'", "sudo touch x", "timeout 5 make deploy", "frob all", "python3 -c 'open(1)'", "python3 - <<X\n1\nX",
    ".venv/bin/ruff format .", "./sed -i s/a/b/ x", "npx prettier --write .", "npm run format", "make fmt", "bash -s < x",
)  # fmt: skip
ELSEWHERE = (
    "git commit -m x", "git add x", "git push", "git checkout -b x", "git branch x", "git restore --staged x", "git apply --cached p",
    "git stash", "git tag v1", "curl -X POST localhost:80/x", "sed -i s/a/b/ x && git commit -am x",
)  # fmt: skip


def is_elsewhere(word: str) -> bool:
    return word.startswith(("/etc/", "~/", "../", "$HOME"))


@for_each("command", NEVER)
def test_commands_that_only_look_or_check_are_not_compared(command: str) -> None:
    """A23.2"""
    assert not may_change_files(command)


@for_each("command", MAY)
def test_commands_that_may_change_files_are_compared(command: str) -> None:
    """A23.2"""
    assert may_change_files(command)


@for_each("command", ON_FILES)
def test_commands_on_files_have_no_other_effect(command: str) -> None:
    """A23.2"""
    assert acts_only_on_files(command, is_elsewhere, contained=False)
    assert acts_only_on_files(command, is_elsewhere, contained=True)


@for_each("command", ELSEWHERE_UNCONFINED)
def test_a_sandbox_without_network_confines_a_command_to_files(command: str) -> None:
    """A23.2"""
    assert not acts_only_on_files(command, is_elsewhere, contained=False)
    assert acts_only_on_files(command, is_elsewhere, contained=True)


@for_each("command", ELSEWHERE)
def test_records_of_git_and_servers_are_no_files(command: str) -> None:
    """A23.2"""
    assert not acts_only_on_files(command, is_elsewhere, contained=True)
