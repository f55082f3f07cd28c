"""Programs that Daiku starts come from system folders, and never from a folder that a repository can write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daiku.guard.sandbox import bubblewrap
from daiku.workspace import programs
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.programs import find_configured_program, find_program

NAME = "daiku-helper"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No system folders, no workspaces of other tests, and a home."""
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(programs, "_workspaces", type(programs._workspaces)())
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir("/")


def install(folder: Path, name: str = NAME, script: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def use_path(monkeypatch: pytest.MonkeyPatch, *entries: Path | str) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, entries)))


def node_modules(top: Path) -> str:
    return str(install(top / "project/node_modules/.bin").parent)


def venv(top: Path) -> str:
    return str(install(top / "project/.venv/bin").parent)


def direnv(top: Path) -> str:
    return str(install(top / "project/.direnv/python-3.12/bin").parent)


def root_itself(top: Path) -> str:
    return str(install(top / "project").parent)


def linked_folder(top: Path) -> str:
    install(top / "project/tools")
    (top / "linked").symlink_to(top / "project/tools")
    return str(top / "linked")


def linked_program(top: Path) -> str:
    program = install(top / "project/tools")
    (top / "bin").mkdir()
    (top / "bin" / NAME).symlink_to(program)
    return str(top / "bin")


def twice_linked_program(top: Path) -> str:
    linked_program(top)
    (top / "second").mkdir()
    (top / "second" / NAME).symlink_to(top / "bin" / NAME)
    return str(top / "second")


def dotted(top: Path) -> str:
    install(top / "project/tools")
    (top / "elsewhere").mkdir()
    return f"{top}/elsewhere/../project/tools"


def other_case(top: Path) -> str:
    return str(install(top / "PROJECT/bin").parent)


def folder_above(top: Path) -> str:
    return str(install(top).parent)


def repository_above(top: Path) -> str:
    (top / ".git").mkdir()
    return str(install(top / "bin").parent)


def modules_above(top: Path) -> str:
    return str(install(top / "node_modules/.bin").parent)


def empty(_top: Path) -> str:
    return ""


def here(_top: Path) -> str:
    return "."


def relative(_top: Path) -> str:
    return "node_modules/.bin"


HOSTILE: tuple[Callable[[Path], str], ...] = (
    node_modules, venv, direnv, root_itself, linked_folder, linked_program, twice_linked_program, dotted, other_case, folder_above,
    repository_above, modules_above, empty, here, relative,
)  # fmt: skip


@pytest.mark.parametrize("known", ["argument", "workspace", "current folder"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda each: each.__name__)
def test_no_folder_that_the_repository_writes_gives_a_program(
    hostile: Callable[[Path], str], known: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.2: links, folders above, and empty entries included."""
    top = tmp_path / "top"
    project = top / "project"
    project.mkdir(parents=True)
    entry = hostile(top)
    install(project)
    install(project / "node_modules/.bin")
    good = install(tmp_path / "good")
    use_path(monkeypatch, entry, good.parent)
    roots: tuple[Path, ...] = ()
    match known:
        case "argument":
            roots = (project,)
        case "workspace":
            DiskWorkspace((project,))
        case _:
            monkeypatch.chdir(project)
    assert find_program(NAME, roots) == str(good)


def test_a_project_s_folder_gives_no_program_before_any_workspace_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.2: the names of such folders are enough."""
    use_path(monkeypatch, node_modules(tmp_path), venv(tmp_path), direnv(tmp_path))
    assert find_program(NAME) == ""


def test_system_folders_come_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.2: an entry of PATH shadows no program of the system."""
    system = install(tmp_path / "system")
    use_path(monkeypatch, install(tmp_path / "mine").parent)
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(system.parent),))
    assert find_program(NAME) == str(system)


def test_a_workspace_in_a_system_folder_gives_none_of_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = install(tmp_path / "system/bin")
    use_path(monkeypatch)
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(system.parent),))
    assert find_program(NAME, (tmp_path / "system",)) == ""


def test_folders_of_the_home_still_count_when_the_home_is_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/.nvm/.git").mkdir(parents=True)
    mine = install(tmp_path / "home/.nvm/versions/v22/bin")
    monkeypatch.chdir(tmp_path / "home")
    use_path(monkeypatch, mine.parent)
    assert find_program(NAME, (tmp_path / "home/project",)) == str(mine)
    assert find_program(NAME, (tmp_path / "home",)) == ""


def test_a_configured_program_keeps_the_order_of_path_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = install(tmp_path / "mine/venv/bin"), install(tmp_path / "other")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(other.parent),))
    inside = install(tmp_path / "project/bin")
    path = os.pathsep.join(map(str, (inside.parent, mine.parent, other.parent)))
    assert find_configured_program(NAME, (tmp_path / "project",), path) == str(mine)


@pytest.mark.parametrize(
    "script",
    [
        'while [ "$1" != "--" ]; do shift; done; shift; exec "$@"',
        "exit 0",
        "touch probe; exit 0",
        "touch probe; readlink /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/ipc",
        "touch probe; echo mnt:[1] pid:[2]",
        "touch probe; echo a b c d",
    ],
    ids=["execs", "succeeds", "leaves the probe", "names its own namespaces", "names too few", "names none"],
)
def test_a_bubblewrap_that_does_not_isolate_is_none(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.2: a command that ran proves nothing; its namespaces do."""
    use_path(monkeypatch, install(tmp_path / "bin", "bwrap", script).parent, "/usr/bin", "/bin")
    assert bubblewrap() == ""


def test_the_probe_of_bubblewrap_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    told = tmp_path / "told"
    use_path(monkeypatch, install(tmp_path / "bin", "bwrap", f"env >> {told}; exit 1").parent)
    assert bubblewrap() == ""
    assert "PATH=" in told.read_text()
    assert "sk-secret" not in told.read_text()
