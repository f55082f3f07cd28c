"""The workspace on disk: its jail, whole patches or nothing, encodings, what hides files."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from daiku.domain.errors import DaikuError, StaleVersionError, ToolValidationError
from daiku.domain.work.patches import FileChange, Patch
from daiku.workspace.disk import DiskWorkspace, is_closed
from daiku.workspace.walk import LARGE, is_large


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("CANARY")
    return folder


@pytest.fixture
def ws(workspace: Path) -> DiskWorkspace:
    return DiskWorkspace([workspace])


def create(path: str, text: str = "x\n") -> Patch:
    return Patch(files=(FileChange(path=path, kind="create", new=text),))


def edit(path: str, old: str, new: str) -> Patch:
    return Patch(files=(FileChange(path=path, kind="edit", old=old, new=new),))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


ESCAPES = [
    "../outside/canary",
    "a/../../outside/canary",
    "..\\outside\\canary",
    "%2e%2e/outside/canary",
    "..%2foutside%2fcanary",
    "file:///etc/passwd",
    "~/canary",
    "/etc/passwd",
    "https://example.com/x",
    "",
    "  ",
    "a\0b",
    ".git\u200b/hooks/x",
    ".git./config",
    ".git /config",
    ".git::$DATA",
    "x:$DATA",
    "\uff0egit/config",
    "\u2024\u2024/x",
    "link_out/new.txt",
    "link_file",
    "/proc/self/environ",
    "x" * 5000,
]


@pytest.mark.parametrize("path", ESCAPES)
async def test_nothing_outside_is_read_or_written_however_it_is_written(
    path: str, ws: DiskWorkspace, workspace: Path, outside: Path
) -> None:
    (workspace / "link_out").symlink_to(outside)
    (workspace / "link_file").symlink_to(outside / "secret")
    with pytest.raises(ToolValidationError):
        await ws.read(path)
    with pytest.raises(DaikuError):
        await ws.apply(create(path), "test")
    assert names(outside) == ["secret"]
    assert (outside / "secret").read_text() == "CANARY"
    assert names(workspace) == ["link_file", "link_out"]


async def test_a_sibling_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj-secret").mkdir()
    (tmp_path / "proj-secret" / "s.txt").write_text("CANARY")
    with pytest.raises(ToolValidationError, match="outside"):
        await DiskWorkspace([tmp_path / "proj"]).read(str(tmp_path / "proj-secret" / "s.txt"))


async def test_a_file_uri_and_an_absolute_path_inside_are_understood(
    ws: DiskWorkspace, workspace: Path
) -> None:
    (workspace / "a b.txt").write_text("hi")
    assert (await ws.read((workspace / "a b.txt").as_uri())).path == "a b.txt"
    assert (await ws.read(str(workspace / "a b.txt"))).text == "hi"
    with pytest.raises(ToolValidationError):
        await ws.read((workspace / "a b.txt").as_uri().replace("a%20b", "%2e%2e%2Foutside"))


async def test_links_that_go_round_and_special_files_are_refused_at_once(
    ws: DiskWorkspace, workspace: Path
) -> None:
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    os.mkfifo(workspace / "pipe")
    started = time.monotonic()
    for name in ("a", "a/x", "pipe"):
        with pytest.raises(ToolValidationError):
            await ws.read(name)
        with pytest.raises(DaikuError):
            await ws.apply(create(name), "test")
    assert time.monotonic() - started < 2
    assert stat.S_ISFIFO((workspace / "pipe").lstat().st_mode)


async def test_a_link_put_in_the_way_after_the_check_is_not_followed(
    ws: DiskWorkspace, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "secret").write_text("inside")
    locate = ws.locate

    def swap(path: str) -> Path:
        real = locate(path)
        if (workspace / "d").is_dir() and not (workspace / "d").is_symlink():
            (workspace / "d").rename(workspace / "moved")
            (workspace / "d").symlink_to(outside)
        return real

    monkeypatch.setattr(ws, "locate", swap)
    with pytest.raises(ToolValidationError, match="leads out"):
        await ws.read("d/secret")
    with pytest.raises(DaikuError):
        await ws.apply(create("d/new"), "test")
    assert names(outside) == ["secret"]


async def test_writing_a_hard_linked_file_leaves_the_other_name_alone(
    ws: DiskWorkspace, workspace: Path, outside: Path
) -> None:
    os.link(outside / "secret", workspace / "f")
    await ws.apply(edit("f", "CANARY", "changed"), "test")
    assert (workspace / "f").read_text() == "changed"
    assert (outside / "secret").read_text() == "CANARY"


async def test_mode_bits_are_kept_and_no_temporary_file_stays(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / "run.sh").write_text("a\n")
    (workspace / "run.sh").chmod(0o750)
    await ws.apply(edit("run.sh", "a\n", "b\n"), "test")
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o750
    assert names(workspace) == ["run.sh"]


async def test_a_read_only_file_is_not_replaced(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / "a").write_text("a")
    (workspace / "a").chmod(0o444)
    with pytest.raises(ToolValidationError, match="read-only"):
        await ws.apply(edit("a", "a", "b"), "test")


async def test_a_patch_creates_edits_renames_and_deletes(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / "e").write_text("1\n2\n")
    (workspace / "d").write_text("x\n")
    (workspace / "r").write_text("y\n")
    stats = await ws.apply(
        Patch(
            files=(
                FileChange(path="new/deep/c", kind="create", new="a\nb\n"),
                FileChange(path="e", kind="edit", old="1\n2\n", new="1\n3\n4\n"),
                FileChange(path="d", kind="delete", old="x\n"),
                FileChange(path="r", kind="rename", old="y\n", new="z\n", to="sub/r2"),
            )
        ),
        "test",
    )
    assert [(s.path, s.kind, s.added, s.removed) for s in stats] == [
        ("new/deep/c", "create", 2, 0),
        ("e", "edit", 2, 1),
        ("d", "delete", 0, 1),
        ("sub/r2", "rename", 1, 1),
    ]
    files = contents(workspace)
    assert files == {"new/deep/c": "a\nb\n", "e": "1\n3\n4\n", "sub/r2": "z\n"}


async def test_a_patch_that_fails_half_way_leaves_everything_as_it_was(
    ws: DiskWorkspace, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a").write_text("a")
    (workspace / "b").write_text("b")
    (workspace / "gone").write_text("g")
    (workspace / "gone").chmod(0o640)
    replace, count = os.replace, 0

    def fail_late(*args: object, **kwargs: object) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(28, "No space left on device")
        replace(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", fail_late)
    patch = Patch(
        files=(
            FileChange(path="gone", kind="delete", old="g"),
            FileChange(path="n/m/new", kind="create", new="n"),
            FileChange(path="a", kind="edit", old="a", new="A"),
            FileChange(path="b", kind="edit", old="b", new="B"),
        )
    )
    with pytest.raises(OSError, match="No space"):
        await ws.apply(patch, "test")
    assert contents(workspace) == {"a": "a", "b": "b", "gone": "g"}
    assert stat.S_IMODE((workspace / "gone").stat().st_mode) == 0o640


async def test_a_file_that_changed_meanwhile_is_refused_and_so_is_the_whole_patch(
    ws: DiskWorkspace, workspace: Path
) -> None:
    (workspace / "a").write_text("user's")
    for patch in (edit("a", "old", "new"), create("a"), edit("none", "old", "new")):
        both = Patch(files=(FileChange(path="first", kind="create", new="x"), *patch.files))
        with pytest.raises(StaleVersionError):
            await ws.apply(both, "test")
    assert contents(workspace) == {"a": "user's"}


@pytest.mark.parametrize(
    ("data", "encoding", "bom"),
    [
        ("\ufeffhé\r\n".encode(), "utf-8", True),
        ("hé".encode("utf-16"), "utf-16-le", True),
        ("関数は合計を返します。引数がないときは零です。\n".encode("cp932"), "cp932", False),
        ("La fille était allée à l'école où l'été s'achève déjà.\n".encode("latin-1"), None, False),
        (b"", "utf-8", False),
    ],
)
async def test_a_file_is_written_back_in_the_encoding_it_was_read_in(
    data: bytes, encoding: str | None, bom: bool, ws: DiskWorkspace, workspace: Path
) -> None:
    (workspace / "f").write_bytes(data)
    found = await ws.read("f")
    assert encoding is None or (found.encoding, found.bom) == (encoding, bom)
    assert "\ufeff" not in found.text
    await ws.apply(edit("f", found.text, found.text + "more\n"), "test")
    assert (workspace / "f").read_bytes() == data + "more\n".encode(found.encoding)


async def test_a_character_that_the_encoding_lacks_is_refused(ws: DiskWorkspace, workspace: Path) -> None:
    data = "関数は合計を返します。引数がないときは零です。\n".encode("cp932")
    (workspace / "f").write_bytes(data)
    text = (await ws.read("f")).text
    with pytest.raises(ToolValidationError, match="cp932"):
        await ws.apply(edit("f", text, text + "\U0001f600"), "test")
    assert (workspace / "f").read_bytes() == data


async def test_binary_huge_and_missing_files_and_folders_say_why(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / "bin").write_bytes(b"\x00\x01\xff")
    (workspace / "dir").mkdir()
    with (workspace / "huge").open("wb") as f:
        f.truncate(11_000_000)
    for name, why in (
        ("bin", "binary"),
        ("dir", "folder"),
        ("huge", "too large"),
        ("none", "does not exist"),
    ):
        with pytest.raises(ToolValidationError, match=why):
            await ws.read(name)
    assert (workspace / "bin").read_bytes() == b"\x00\x01\xff"


async def test_several_roots_are_named_by_their_folders(tmp_path: Path) -> None:
    for name in ("one", "two", "x/one"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "f").write_text(name)
    (tmp_path / "two" / "only").write_text("t")
    ws = DiskWorkspace([tmp_path / "one", tmp_path / "two", tmp_path / "x/one"])
    assert [(await ws.read(p)).text for p in ("one/f", "two/f", "one-2/f", "only")] == [
        "one",
        "two",
        "x/one",
        "t",
    ]
    assert (await ws.read(str(tmp_path / "x/one/f"))).path == "one-2/f"
    with pytest.raises(ToolValidationError) as refused:
        await ws.read("f")
    assert refused.value.failure.hint == "Begin the path with one of: one, two, one-2."


def test_what_git_ignores_is_told_nested_and_negated(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (workspace / ".daikuignore").write_text("private.txt\n!wanted.log\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / ".gitignore").write_text("!special.log\nlocal\n!private.txt\n")
    ignored = [
        "build/x.py",
        "a.log",
        "private.txt",
        "sub/private.txt",
        "sub/local",
        "sub/local/x",
        ".git/config",
    ]
    shown = ["keep.log", "wanted.log", "sub/special.log", "local", "builder/x", "src/a.py", ".gitignore"]
    (workspace / "build").mkdir()
    assert [p for p in ignored if not ws.ignored(workspace / p)] == []
    assert [p for p in shown if ws.ignored(workspace / p)] == []
    (workspace / ".gitignore").write_text("src\n")
    assert ws.ignored(workspace / "src/a.py")
    assert not ws.ignored(workspace)


def test_only_what_is_closed_is_hidden_from_who_names_it(ws: DiskWorkspace, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("build/\n*.log\n.env\n!private\n")
    (workspace / ".daikuignore").write_text("private\nbuild/closed\n")
    (workspace / "build").mkdir()
    (workspace / "build" / ".gitignore").write_text("!closed\n")
    closed = [
        "private",
        "private/x",
        "build/closed/y",
        ".git/config",
        ".env",
        "build/server.pem",
        "build/.ssh/config",
    ]
    assert [p for p in closed if not ws.hidden(workspace / p)] == []
    assert [
        p for p in ("build/x.py", "a.log", "src/server.pem", ".gitignore") if ws.hidden(workspace / p)
    ] == []


def test_closed_is_what_a_daikuignore_names_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("built/\n")
    (tmp_path / ".daikuignore").write_text("closed/\n")
    workspace = DiskWorkspace([tmp_path])
    for path, closed in (("closed/a.txt", True), ("./closed/../closed/b", True), ("built/a", False)):
        assert is_closed(workspace, path) is closed
    for path in (".git/HEAD", ".", "a.txt", "../outside", "/etc/hostname", "x\0y", "~"):
        assert not is_closed(workspace, path)


def test_a_project_is_large_by_the_files_that_are_visible(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("built/\n")
    (tmp_path / "built").mkdir()
    for n in range(LARGE - 1):  # and the .gitignore
        (tmp_path / f"{n}.py").touch()
        (tmp_path / "built" / f"{n}.js").touch()
    assert not is_large((tmp_path,))
    (tmp_path / "one_more.py").touch()
    assert is_large((tmp_path,))
