"""What a run changed is read from the files: a command that only touches them, or changes them back, changed nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from daiku.runs import RunRequest
from tests.runs.playing import Watch, make_app

pytestmark = pytest.mark.slow  # real commands

CALC = "def add(a, b):\n    return a - b\n"


def sh(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "shell/run", "args": {"command": command, **more}}


def write(content: str, path: str = "calc.py") -> dict[str, Any]:
    return {"tool": "files/write", "args": {"path": path, "content": content}}


def edit(search: str, replace: str) -> dict[str, Any]:
    args = {"path": "calc.py", "edits": [{"search": search, "replace": replace}]}
    return {"tool": "files/edit", "args": args}


FIXED = edit("a - b", "a + b")
NOTHING: dict[str, Sequence[dict[str, Any]]] = {
    "sed without a match": [sh("sed -i s/nomatch/y/ calc.py")],
    "sed with a pattern like a path": [sh("sed -i '/nomatch/d' calc.py")],
    "perl without a match": [sh("perl -pi -e s/nomatch/y/ calc.py")],
    "touch": [sh("touch calc.py")],
    "copied over itself": [sh("cp calc.py x && mv x calc.py")],
    "same text": [sh("cp calc.py x && cat x > calc.py; rm x")],
    "same text by a tool": [write(CALC)],
    "changed and changed back by commands": [sh("sed -i s/-/+/ calc.py"), sh("sed -i s/+/-/ calc.py")],
    "changed back by git": [sh("sed -i s/-/+/ calc.py"), sh("git checkout -q calc.py")],
    "changed by a tool and back": [FIXED, edit("a + b", "a - b")],
    "changed by a tool and back by git": [FIXED, sh("git checkout -q -- calc.py")],
    "changed by a command and back by a tool": [sh("sed -i s/-/+/ calc.py"), edit("a + b", "a - b")],
    "made and deleted": [sh("touch new.py"), sh("rm new.py")],
    "made by a tool and deleted": [write("x", "new.py"), sh("rm new.py")],
    "made in one command and deleted": [sh("echo x > new.py; rm new.py")],
    "moved and moved back": [sh("mv calc.py b.py"), sh("mv b.py calc.py")],
    "mode changed and changed back": [sh("chmod +x calc.py"), sh("chmod -x calc.py")],
    "nothing to restore": [sh("git checkout -q calc.py")],
    "a cache of a program": [sh("mkdir -p .pytest_cache && echo x > .pytest_cache/x")],
    "command that failed": [sh("sed -i s/x/y/ none.py")],
}  # fmt: skip
SOMETHING: dict[str, Sequence[dict[str, Any]]] = {
    "sed with a match": [sh("sed -i s/-/+/ calc.py")],
    "sed with a match, then a failure": [sh("sed -i s/-/+/ calc.py; exit 3")],
    "same size": [sh("sed -i s/a/c/g calc.py")],
    "same size and time": [sh("touch -r calc.py t; sed -i s/-/+/ calc.py; touch -r t calc.py; rm t")],
    "of two changes one was changed back": [sh("sed -i 's/-/+/; s/add/sum/' calc.py"), sh("sed -i s/+/-/ calc.py")],
    "empty file": [sh("touch new.py")],
    "empty folder": [sh("mkdir new")],
    "mode": [sh("chmod +x calc.py")],
    "deletion": [sh("rm calc.py")],
    "rename": [sh("mv calc.py b.py")],
    "rename that git records": [sh("git mv calc.py b.py")],
    "link": [sh("ln -s calc.py link.py")],
    "ignored folder": [sh("mkdir -p dist && echo 1 > dist/out.js")],
    "ignored file changed": [sh("echo 2 > old.log")],
    "hidden file": [sh("cp calc.py .hidden")],
    "a file in a new folder": [sh("mkdir -p a/b && cp calc.py a/b/")],
    "by the way of a check": [sh("python3 -c 'import calc' ; sed -i s/-/+/ calc.py")],
    "branch": [sh("git checkout -q -b topic")],
    "stage": [sh("chmod +x calc.py; git add calc.py; chmod -x calc.py")],
    "commit": [sh("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")],
    "a script that may act elsewhere": [sh("sh ./deploy.sh")],
    "code that may act elsewhere": [sh("python3 - <<'X'\np='calc.py'\ns=open(p).read()\nopen(p,'w').write(s.replace('no','y'))\nX")],
    "elsewhere": [sh("echo x > ../outside.txt")],
    "by a tool": [FIXED],
    "by a tool and back to another text": [FIXED, edit("a + b", "a * b")],
    "by a tool and deleted": [FIXED, sh("rm calc.py")],
    "background": [sh("sed -i s/-/+/ calc.py", background=True)],
}  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "calc.py").write_text(CALC)
    (folder / "deploy.sh").write_text("exit 0\n")
    (folder / ".gitignore").write_text("dist/\n*.log\n")
    (folder / "old.log").write_text("1\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "add", "."], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=folder, check=True)
    return folder


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Path:
    return shutil.copytree(repository, tmp_path / "project")


async def reasons_after(calls: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    lines = [*({"calls": [call]} for call in calls), {"text": "I changed calc.py as you asked."}]
    app = make_app(folder, *lines)
    result = await app.runs.run(
        RunRequest("Change what calc.py adds.", approvals="all", attended=False), Watch()
    )
    await app.aclose()
    return [reason.kind for reason in result.reasons]


@pytest.mark.parametrize("case", NOTHING)
async def test_a_claimed_change_without_a_changed_file_is_not_verified(
    case: str, project: Path, tmp_path: Path
) -> None:
    """A23.2"""
    assert await reasons_after(NOTHING[case], tmp_path) == ["nothing_changed"]


@pytest.mark.parametrize("case", SOMETHING)
async def test_every_kind_of_change_counts(case: str, project: Path, tmp_path: Path) -> None:
    """A23.2"""
    assert await reasons_after(SOMETHING[case], tmp_path) == []
