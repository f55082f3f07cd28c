"""How the project stood when a run began: recorded whole or not at all, and made again byte for byte."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.core.guard.redact import Redactor
from daiku.core.ports import TextFile
from daiku.domain.trials import ChangedFile, ProjectStart
from daiku.sdk.trials.copies import copy_project
from daiku.tools.git.standing import LARGEST, MOST_FILES, project_start
from daiku.trace.starts import DAYS, Starts
from daiku.workspace.disk import DiskWorkspace
from tests.attacks.victim import snapshot
from tests.sdk.trials.project import MENDS, WRONG, Project, call, project

DONE = {"text": "Done."}
KEY = "sk-ant-" + "a1B2" * 10


@pytest.fixture
def place() -> Iterator[Project]:
    with project() as made:
        yield made


class Editor:
    """An editor in which the files `open` are open."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def open_files(self) -> tuple[str, ...]:
        return self.names


class Unsaved(DiskWorkspace):
    """A workspace in which calc.py has a text that was not saved."""

    async def read(self, path: str) -> TextFile:
        found = await super().read(path)
        return TextFile(found.path, "unsaved = 1\n", version=2) if path == "calc.py" else found


def start_of(place: Project) -> ProjectStart:
    roots = (place.folder,)
    return asyncio.run(project_start(roots, DiskWorkspace(roots), None, Redactor(())))


def copied(place: Project, start: ProjectStart) -> Path:
    copy = place.base / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    assert not asyncio.run(copy_project(start, copy))
    return copy


def files_of(folder: Path) -> dict[str, bytes | str]:
    return {name: what for name, what in snapshot(folder).items() if name.split("/")[0] != ".git"}


def test_what_was_not_committed_is_part_of_the_start(place: Project) -> None:
    place.write(new__py="new = 1\n", check__py="print('changed')\n")
    (place.folder / "calc.py").unlink()
    (place.folder / "tool").write_bytes(b"#!/bin/sh\n\x00\xff")
    (place.folder / "tool").chmod(0o755)
    (place.folder / "link").symlink_to("new.py")
    place.git("add", "new.py")
    before = snapshot(place.folder)
    copy = copied(place, start_of(place))
    assert files_of(copy) == files_of(place.folder)
    assert (copy / "tool").stat().st_mode & 0o111
    assert snapshot(place.folder) == before


def test_the_first_call_that_may_change_something_waits_until_the_start_is_known(place: Project) -> None:
    """The model answers at once here, and its first command changes what is to be kept."""
    place.record(call("echo x > calc.py; python3 -B check.py"), call("git checkout calc.py"), MENDS, DONE)
    (session,) = Starts(place.home / "starts").sessions()
    (start,) = Starts(place.home / "starts").of(session).values()
    assert (start.why, start.changed) == (None, ())


async def test_an_unsaved_text_of_the_editor_counts(own_environment: Path) -> None:
    with project() as place:
        roots = (place.folder,)
        start = await project_start(roots, Unsaved(roots), Editor("calc.py", "check.py"), str)  # type: ignore[arg-type]  # it is asked for nothing else
    assert start.changed == (ChangedFile(path="calc.py", content=_base64("unsaved = 1\n")),)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def in_bytes(place: Project, text: str, encoding: str) -> None:
    (place.folder / "notes.txt").write_bytes(text.encode(encoding))


REASONS: dict[str, tuple[str, Callable[[Project], object]]] = {
    "no repository": ("no_repository", lambda place: shutil.rmtree(place.folder / ".git")),
    "no commit": ("no_commit", lambda place: (shutil.rmtree(place.folder / ".git"), place.git("init", "-q"))),
    "submodules": ("submodules", lambda place: place.write(__gitmodules="")),
    "a repository inside": ("submodules", lambda place: place.git("init", "-q", "inner")),
    "much": ("too_large", lambda place: (place.folder / "big").write_bytes(b"x" * (LARGEST + 1))),
    "many": ("too_large", lambda place: place.write(**{f"f{n}": "" for n in range(MOST_FILES + 1)})),
    "a secret": ("secret", lambda place: place.write(calc__py=f"key = '{KEY}'\n")),
    "a secret in UTF-16": ("secret", lambda place: in_bytes(place, f"key = '{KEY}'\n", "utf-16")),
    "a secret in UTF-32": ("secret", lambda place: in_bytes(place, KEY, "utf-32-be")),
    "a secret as a name": ("secret", lambda place: (place.folder / KEY).write_text("x", "utf-8")),
    "a secret that a link names": ("secret", lambda place: (place.folder / "link").symlink_to(KEY)),
    "a file of secrets": ("secret", lambda place: place.write(__env="A=1\n")),
}


@pytest.mark.parametrize("case", sorted(REASONS))
def test_what_cannot_be_kept_is_a_value_and_nothing_of_it_is_kept(place: Project, case: str) -> None:
    """X.12: a run begins all the same, and no trial is made of it."""
    why, change = REASONS[case]
    change(place)
    start = start_of(place)
    assert (start.why, start.commit, start.changed) == (why, "", ())
    place.record(call("true"), DONE)
    assert place.cases() == ()
    assert KEY.encode() not in b"".join(p.read_bytes() for p in place.home.rglob("*") if p.is_file())


def test_several_folders_and_none_are_told_apart() -> None:
    roots = (Path("/a"), Path("/b"))
    several = asyncio.run(project_start(roots, DiskWorkspace(roots), None, str))
    none = asyncio.run(project_start((), DiskWorkspace(()), None, str))
    assert (several.why, none.why) == ("several_folders", "no_repository")


def test_the_copy_has_the_history_and_nothing_of_the_repositorys_settings(place: Project) -> None:
    place.git("config", "core.fsmonitor", "/bin/false")
    place.git("config", "alias.st", "!touch planted")
    place.write(more__py="more = 1\n")
    head = place.commit("More")
    copy = copied(place, start_of(place))
    place.environ["GIT_DIR"] = str(copy / ".git")
    assert place.git("log", "--format=%H %s").splitlines()[0] == f"{head} More"
    assert len(place.git("log", "--format=%H").splitlines()) == 2
    assert place.git("fsck", "--strict") == ""
    config = (copy / ".git" / "config").read_text("utf-8")
    assert "fsmonitor" not in config
    assert "alias" not in config
    assert not (copy / ".git" / "objects" / "info" / "alternates").exists()


def test_a_start_whose_commit_is_gone_is_not_tried(place: Project) -> None:
    start = start_of(place).model_copy(update={"commit": "1" * 40})
    assert asyncio.run(copy_project(start, place.base / "copy")).id == "trials.commit_gone"


@pytest.mark.parametrize("path", ["../out", "/etc/out", ".git/hooks/x", "a/.GIT/config", ""])
def test_a_start_that_names_places_outside_the_copy_is_refused(place: Project, path: str) -> None:
    """What is kept could have been changed by somebody."""
    start = start_of(place).model_copy(update={"changed": (ChangedFile(path=path),)})
    with pytest.raises(OSError, match="no path inside"):
        asyncio.run(copy_project(start, place.base / "copy"))


NAMES = st.from_regex(r"[a-zあい][a-z é'\"\\あ]{0,6}[a-zあ]", fullmatch=True)
CONTENTS = st.one_of(st.none(), st.binary(max_size=60))


@pytest.fixture(scope="module")
def shared() -> Iterator[Project]:
    with project() as made:
        yield made


@settings(max_examples=25)
@given(
    committed=st.dictionaries(NAMES, st.binary(max_size=60), max_size=4),
    now=st.dictionaries(NAMES, CONTENTS, max_size=4),
)
def test_any_start_is_made_again_as_it_was(
    shared: Project, committed: dict[str, bytes], now: dict[str, bytes | None]
) -> None:
    """Contents, removals and names of any kind; names differ in more than their letters' case."""
    shared.git("rm", "-rq", "--cached", "--ignore-unmatch", ".")
    for each in shared.folder.iterdir():
        if each.is_file():
            each.unlink()
    shared.write(calc__py=WRONG)
    for name, data in committed.items():
        (shared.folder / name).write_bytes(data)
    shared.git("add", "--all")
    shared.git("commit", "-q", "--allow-empty", "-m", "next")
    for name, content in now.items():
        if content is None:
            (shared.folder / name).unlink(missing_ok=True)
        else:
            (shared.folder / name).write_bytes(content)
    start = start_of(shared)
    assert start.why is None
    assert files_of(copied(shared, start)) == files_of(shared.folder)


def test_what_is_kept_can_be_read_forgotten_and_goes_when_it_is_old(tmp_path: Path) -> None:
    starts = Starts(tmp_path / "starts")
    start = ProjectStart(root="/r", commit="1" * 40, changed=(ChangedFile(path="é", content="eA=="),))
    for session in ("ses_1", "ses_2", "ses_3"):
        starts.keep(session, "run_1", start)
    starts.keep("../out", "run_1", start)
    assert starts.of("ses_1") == {"run_1": start}
    assert (tmp_path / "starts" / "ses_1" / "run_1.start").stat().st_mode & 0o777 == 0o600
    starts.forget("ses_1")
    old = (tmp_path / "starts" / "ses_2").stat().st_mtime - (DAYS + 1) * 86_400
    os.utime(tmp_path / "starts" / "ses_2", (old, old))
    assert starts.swept().sessions() == {"ses_3"}
    assert [each.name for each in tmp_path.iterdir()] == ["starts"]


def test_a_start_that_is_damaged_is_none(tmp_path: Path) -> None:
    starts = Starts(tmp_path)
    starts.keep("ses_1", "run_1", ProjectStart(root="/r"))
    (tmp_path / "ses_1" / "run_1.start").write_bytes(b"no start")
    assert starts.of("ses_1") == {}
