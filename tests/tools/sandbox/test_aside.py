"""After a command: files that make tools fetch or run something are found by their text, as after an edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.domain.events import Event, Notice
from daiku.guard.sandbox.aside import before
from daiku.tools.shell.protecting import quarantine_changes
from daiku.tools.tool import Answer, ToolContext
from tests.tools.shell.test_shell import context_of

EVIL = "https://evil.example/s"
ACTING = {
    "a.json": f'{{"$schema": "{EVIL}"}}',
    "sub/b.yml": f"# yaml-language-server: $schema={EVIL}\n",
    "c.xml": f'<!DOCTYPE a SYSTEM "{EVIL}"><a/>',
    "d.toml": f"#:schema {EVIL}\n",
    "README.md": f"![a]({EVIL})\n",
    "n.ipynb": f'{{"cells": [{{"cell_type": "markdown", "source": "![a]({EVIL})"}}]}}',
    "package.json": '{"scripts": {"postinstall": "./x"}}',
}
HARMLESS = {"a.json": "{}", "README.md": "text\n", "src/a.py": f"x = '{EVIL}'\n", "b.yml": "a: 1\n"}


class Place:
    """A project in which a command changes files."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "proj"
        self.root.mkdir()
        self.aside = folder / "aside"
        self.events: list[Event] = []
        self.context = context_of(self.root, self.events.append, SandboxSettings())

    def write(self, files: dict[str, str]) -> None:
        for name, content in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(content)

    async def run(self, files: dict[str, str], command: str = "x", *, sandboxed: bool = True) -> list[str]:
        """Change `files` as a command would; the names of those that were put aside."""
        earlier = before((self.root,))
        self.write(files)
        moved = await quarantine_changes(earlier, self.aside, self.context, command, sandboxed=sandboxed)
        return sorted(each.place.relative_to(self.root).as_posix() for each in moved)

    @property
    def told(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, Notice))


async def _answer(question: str, offered: Any) -> Answer:
    raise AssertionError(question, offered)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def attended(context: ToolContext) -> ToolContext:
    return replace(context, ask=_answer)


async def test_acting_files_are_put_aside_where_nobody_is_there(place: Place) -> None:
    assert await place.run(ACTING) == sorted(ACTING)
    assert not any((place.root / name).exists() for name in ACTING)
    assert EVIL in place.told


async def test_other_files_stay(place: Place) -> None:
    assert await place.run(HARMLESS) == []
    assert place.told == ""


async def test_the_text_before_the_command_comes_back(place: Place) -> None:
    place.write({"package.json": '{"scripts": {"test": "x"}}', "README.md": "mine\n"})
    assert await place.run(ACTING) == sorted(ACTING)
    assert (place.root / "package.json").read_text() == '{"scripts": {"test": "x"}}'
    assert (place.root / "README.md").read_text() == "mine\n"


async def test_what_a_file_did_before_is_left(place: Place) -> None:
    place.write(ACTING)
    assert await place.run({name: content + "\n\n" for name, content in ACTING.items()}) == []


async def test_a_user_is_told_of_addresses_and_asked_about_scripts(place: Place) -> None:
    place.context = attended(place.context)
    assert await place.run(ACTING) == ["package.json"]
    assert all(name in place.told for name in ("a.json", "b.yml", "c.xml", "d.toml", "README.md", "n.ipynb"))


async def test_without_a_sandbox_everything_is_told_and_stays(place: Place) -> None:
    assert await place.run(ACTING, sandboxed=False) == []
    assert all(Path(name).name in place.told for name in ACTING)
    assert (place.root / "package.json").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "/root"])
async def test_a_link_that_leaves_the_project_is_put_aside_in_a_work_item(place: Place, target: str) -> None:
    place.context = replace(place.context, personal=False)
    earlier = before((place.root,))
    (place.root / "link").symlink_to(target)
    (place.root / "inner").symlink_to("src")
    moved = await quarantine_changes(earlier, place.aside, place.context, "x", sandboxed=True)
    assert [each.place.name for each in moved] == ["link"]
    assert target in place.told


@pytest.mark.parametrize(
    ("name", "moved"), [("package.json", True), ("sub/a.yml", True), ("docs.md", False), ("b.txt", False)]
)
async def test_a_link_that_gives_a_file_another_meaning_is_put_aside(
    place: Place, name: str, moved: bool
) -> None:
    """A23.4: what is written to the file later counts under the name of the link."""
    place.write({"a.md": "x", "sub/c.txt": "x"})
    earlier = before((place.root,))
    (place.root / name).symlink_to(place.root / "a.md")
    found = await quarantine_changes(earlier, place.aside, place.context, "x", sandboxed=True)
    assert bool(found) == moved


@pytest.mark.parametrize("folder", ["", "sub/"])
async def test_a_pyvenv_cfg_hides_no_other_file(place: Place, folder: str) -> None:
    """A23.4: it does not make packages of the folder that it lies in."""
    (place.root / "sub").mkdir()
    planted = {
        f"{folder}pyvenv.cfg": "x",
        f"{folder}.vscode/tasks.json": "x",
        f"{folder}package.json": ACTING["package.json"],
    }
    assert await place.run(planted) == [f"{folder}.vscode", f"{folder}package.json"]


PLANTED = {
    "node_modules/.bin/eslint": "#!/bin/sh\n",
    ".venv/lib/python3.12/site-packages/a.pth": "import x\n",
    ".venv/bin/python": "#!/bin/sh\n",
    "env/pyvenv.cfg": "home = /x\n",
    "venv/lib/python3.12/site-packages/sitecustomize.py": "x\n",
}


@pytest.mark.parametrize("name", PLANTED)
async def test_a_user_is_told_of_programs_planted_for_the_editor(place: Place, name: str) -> None:
    place.write({"env/pyvenv.cfg": "home = /usr\n"})
    await place.run({name: PLANTED[name]}, "make test")
    assert name in place.told


@pytest.mark.parametrize(
    "command", ["npm install x", "pip install -r r.txt", "uv sync", "python -m venv .venv"]
)
async def test_an_installation_is_not_told(place: Place, command: str) -> None:
    await place.run(PLANTED, command)
    assert place.told == ""


async def test_packages_are_not_read(place: Place) -> None:
    assert await place.run({f"node_modules/x/{name}": content for name, content in ACTING.items()}) == []
