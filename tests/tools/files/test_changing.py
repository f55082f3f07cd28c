"""The file tools as a model uses them: through the registry, on a real folder, with checkpoints."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from daiku.domain.errors import DaikuError
from daiku.domain.events import CheckpointEvent, Edit, Event
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.patches import FileStat, Patch
from daiku.run.rules.outside import TextFile
from daiku.settings.config import Config
from daiku.tools.files.changing import build_file_tools
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Preview, ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from tests.core.notebooks.test_celltext import SAMPLE
from tests.llm.pictures import picture, size_of


@dataclass
class Bench:
    """A workspace with its tools, and the events that they gave."""

    root: Path
    home: Path
    workspace: DiskWorkspace
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.checkpoints = CheckpointStore(self.home / "checkpoints", self.workspace)
        self.registry = ToolRegistry(build_file_tools())
        self.context = ToolContext(
            session="s",
            run="r",
            call_id="call_1",
            workspace=self.workspace,
            checkpoints=self.checkpoints,
            config=Config(),
            emit=self.events.append,
        )

    async def call(self, tool: str, **args: JsonValue) -> ToolResult:
        return await self.registry.call(ToolCall(tool=tool, args=args), self.context)

    async def preview(self, tool: str, **args: JsonValue) -> Preview | ToolResult | None:
        return await self.registry.preview(ToolCall(tool=tool, args=args), self.context)

    def write(self, path: str, data: str | bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())

    def beside(self) -> list[str]:
        return [p.name for p in self.root.parent.iterdir() if p != self.home]

    def contents(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def bench(workspace: Path, daiku_home: Path) -> Bench:
    return Bench(workspace, daiku_home, DiskWorkspace([workspace]))


def test_every_tool_is_described_in_a_few_sentences() -> None:
    for spec in ToolRegistry(build_file_tools()).specs():
        assert 20 < len(spec.description) < 600, spec.name
    assert [s.name for s in ToolRegistry(build_file_tools()).specs() if s.effect == "edit"] == [
        f"files/{verb}" for verb in ("write", "edit", "patch", "move", "delete")
    ]


async def test_an_edit_tells_its_diff_and_can_be_undone(bench: Bench) -> None:
    bench.write("a.py", "x = 1\ny = 2\n")
    result = await bench.call(
        "files/edit", path="a.py", edits=[{"search": "y = 2", "replace": "y = 3\nz = 4"}]
    )
    assert result.ok, result.text
    assert result.text.startswith(
        "Changed a.py (+2 -1)\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n x = 1\n-y = 2\n+y = 3\n"
    )
    checkpointed, edited = bench.events
    assert isinstance(checkpointed, CheckpointEvent)
    assert isinstance(edited, Edit)
    assert checkpointed.files == ("a.py",)
    assert edited.checkpoint_id == checkpointed.checkpoint_id
    assert edited.call_id == "call_1"
    assert edited.files == (FileStat(path="a.py", kind="edit", added=2, removed=1),)
    assert "+z = 4" in edited.diff
    await bench.checkpoints.restore(edited.checkpoint_id)
    assert bench.contents() == {"a.py": b"x = 1\ny = 2\n"}


async def test_a_refused_edit_changes_nothing_and_keeps_no_checkpoint(bench: Bench) -> None:
    bench.write("a.py", "def area(r):\n    return 3 * r\n")
    before = bench.contents()
    result = await bench.call("files/edit", path="a.py", edits=[{"search": "return 4 * r", "replace": "x"}])
    assert not result.ok
    assert "2 |     return 3 * r" in result.text
    assert (bench.contents(), bench.events, bench.checkpoints.list("s")) == (before, [], ())


async def test_an_edit_of_a_file_that_is_not_there_is_answered_with_the_nearest_names(bench: Bench) -> None:
    bench.write("src/calc.py", "x = 1\n")
    update = "*** Begin Patch\n*** Update File: src/clac.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
    diff = "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    for tool, args in (
        ("files/edit", {"path": "src/clac.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}),
        ("files/patch", {"patch": update}),
        ("files/patch", {"patch": diff}),
    ):
        result = await bench.call(tool, **args)  # type: ignore[arg-type]
        assert not result.ok
        assert "The nearest are src/calc.py." in result.text
    added = "*** Begin Patch\n*** Add File: lib/calc.py\n+x\n*** Update File: src/calc.py\n@@\n-no\n+x\n*** End Patch"
    assert "The nearest are" not in (await bench.call("files/patch", patch=added)).text


async def test_a_patch_over_files_is_done_whole_or_not_at_all(bench: Bench) -> None:
    bench.write("a.txt", "one\n")
    bench.write("b.txt", "two\n")
    before = bench.contents()
    good = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-{}\n+2\n"
    result = await bench.call("files/patch", patch=good.format("TWO"))
    assert (result.ok, bench.contents()) == (False, before)
    result = await bench.call("files/patch", patch=good.format("two"))
    assert result.ok, result.text
    assert bench.contents() == {"a.txt": b"1\n", "b.txt": b"2\n"}
    assert len(bench.events) == 2


@pytest.mark.parametrize(
    "patch",
    [
        "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: ../../x\n+CANARY\n*** End Patch",
        "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: /elsewhere/x\n+CANARY\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.txt\n*** Move to: /elsewhere/x\n@@\n-one\n+CANARY\n*** End Patch",
        "--- a/a.txt\n+++ b/../../x\n@@ -1 +1 @@\n-one\n+CANARY\n",
        "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+CANARY\n",
        "../x\n<<<<<<< SEARCH\n=======\nCANARY\n>>>>>>> REPLACE",
        "File: `../x`:\n```\nCANARY\n```",
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: ./a.txt\n*** End Patch",
    ],
)
async def test_a_patch_that_leads_out_or_names_a_file_twice_is_refused_whole(
    bench: Bench, patch: str
) -> None:
    bench.write("a.txt", "one\n")
    result = await bench.call("files/patch", patch=patch)
    assert not result.ok
    assert bench.contents() == {"a.txt": b"one\n"}
    assert bench.beside() == ["workspace"]


@pytest.mark.parametrize(
    ("lines", "plain"),
    [
        ({}, "one\ntwo\n  three\n"),
        ({"start_line": 2, "end_line": 2}, "two\n"),
        ({"start_line": 2}, "two\n  three\n"),
    ],
)
async def test_a_file_that_was_read_is_there_without_its_line_numbers_too(
    bench: Bench, lines: dict[str, JsonValue], plain: str
) -> None:
    bench.write("p.txt", b"one\ntwo\n  three\n")
    result = await bench.call("files/read", path="p.txt", **lines)
    assert "2 | two" in result.text
    assert result.plain == plain


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso2022_jp", "# 日本語の文書\nabc\n"),
        ("latin-1", "caf\u00e9 cr\u00e8me\nna\u00efve d\u00e9j\u00e0\n"),
    ],
)
async def test_a_file_is_written_in_the_encoding_that_it_has(bench: Bench, encoding: str, text: str) -> None:
    bench.write("t.txt", text.encode(encoding))
    word = text.rsplit(maxsplit=1)[-1]
    new = "漢字" if encoding == "iso2022_jp" else "\u00e9t\u00e9"
    result = await bench.call("files/edit", path="t.txt", edits=[{"search": word, "replace": new}])
    assert result.ok, result.text
    assert bench.contents()["t.txt"] == text.replace(word, new).encode(encoding)


async def test_writing_makes_folders_and_keeps_crlf_and_bom(bench: Bench) -> None:
    assert (await bench.call("files/write", path="new/deep/a.txt", content="hi\n")).text == (
        "Made new/deep/a.txt (+1 -0)"
    )
    bench.write("w.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert (await bench.call("files/read", path="w.txt")).ok
    assert (await bench.call("files/write", path="w.txt", content="one\n2\n")).ok
    assert bench.contents()["w.txt"] == b"\xef\xbb\xbfone\r\n2\r\n"
    again = await bench.call("files/write", path="w.txt", content="one\n2\n")
    assert again.ok
    assert "already as wanted" in again.text


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files/write", {"path": "a.txt", "content": "one\ntwo\n"}),
        ("files/edit", {"path": "a.txt", "edits": [{"search": "one", "replace": "one"}]}),
        ("files/patch", {"patch": "a.txt\n<<<<<<< SEARCH\none\n=======\none\n>>>>>>> REPLACE\n"}),
        ("files/patch", {"patch": "File: `a.txt`:\n```\none\ntwo\n```\n"}),
    ],
)
async def test_what_is_already_as_wanted_is_a_success_that_changes_nothing(
    bench: Bench, tool: str, args: dict[str, JsonValue]
) -> None:
    bench.write("a.txt", "one\ntwo\n")
    result = await bench.call(tool, **args)
    assert result.ok, result.text
    assert "already as wanted" in result.text
    assert not bench.events
    assert isinstance(await bench.preview(tool, **args), ToolResult), "nobody is asked about it"
    absent = await bench.call("files/edit", path="a.txt", edits=[{"search": "x", "replace": "x"}])
    assert not absent.ok


async def test_whole_files_of_a_reply_and_a_patch_behind_them_are_all_or_nothing(bench: Bench) -> None:
    bench.write("a.txt", "one\n")
    whole = "File: `n.txt`:\n```\nnew\n```\n\nFile: `../evil.txt`:\n```\nx\n```\n"
    assert not (await bench.call("files/patch", patch=whole)).ok
    behind = "File: `n.txt`:\n```\nnew\n```\n\na.txt\n<<<<<<< SEARCH\n{}\n=======\ntwo\n>>>>>>> REPLACE\n"
    assert not (await bench.call("files/patch", patch=behind.format("zero"))).ok
    assert bench.contents() == {"a.txt": b"one\n"}
    assert (await bench.call("files/patch", patch=behind.format("one"))).ok
    assert bench.contents() == {"a.txt": b"two\n", "n.txt": b"new\n"}


LEFT_OUT = "".join(f"line {n}\n" for n in range(30))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files/write", {"path": "a.txt", "content": "new\n{}\nline 29\n"}),
        ("files/edit", {"path": "a.txt", "edits": [{"search": "line 4\nline 5\n", "replace": "new\n{}\n"}]}),
        ("files/patch", {"patch": "a.txt\n<<<<<<< SEARCH\nline 4\nline 5\n=======\nnew\n{}\n>>>>>>> REPLACE\n"}),
        ("files/patch", {"patch": "File: `a.txt`:\n```\nnew\n{}\nline 29\n```\n"}),
        ("files/patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-line 4\n+new\n+{}\n line 5\n*** End Patch"}),
        ("files/patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -5,2 +5,3 @@\n-line 4\n+new\n+{}\n line 5\n"}),
    ],
)  # fmt: skip
async def test_lines_that_stand_for_others_are_never_written_and_dots_alone_when_they_come_again(
    bench: Bench, tool: str, args: dict[str, JsonValue]
) -> None:
    bench.write("a.txt", LEFT_OUT)
    await bench.call("files/read", path="a.txt")
    for mark, again in (("// ... existing code ...", False), ("...", True)):
        given = json.loads(json.dumps(args).replace("{}", mark))
        first = await bench.call(tool, **given)
        assert not first.ok
        assert "left out" in first.text
        assert bench.contents() == {"a.txt": LEFT_OUT.encode()}
        assert not isinstance(await bench.preview(tool, **given), Preview) or again
        assert (await bench.call(tool, **given)).ok == again
    assert b"\n...\n" in bench.contents()["a.txt"]


async def test_what_is_left_out_of_a_whole_file_is_filled_in(bench: Bench) -> None:
    bench.write("a.txt", LEFT_OUT.replace("\n", "\r\n"))
    await bench.call("files/read", path="a.txt")
    new = "line 0\nnew\nline 2\n# ... rest unchanged ...\n"
    assert (await bench.call("files/write", path="a.txt", content=new)).ok
    assert bench.contents()["a.txt"] == LEFT_OUT.replace("line 1\n", "new\n").replace("\n", "\r\n").encode()


async def test_moving_and_deleting_also_work_on_binary_files(bench: Bench) -> None:
    bench.write("img.bin", b"\x00\x01")
    bench.write("t.txt", "t\n")
    assert (await bench.call("files/move", path="img.bin", to="pics/img.bin")).ok
    assert (await bench.call("files/delete", path="t.txt")).ok
    assert bench.contents() == {"pics/img.bin": b"\x00\x01"}
    assert (await bench.call("files/delete", path="pics/img.bin")).ok
    assert bench.contents() == {}
    for event in reversed([e for e in bench.events if isinstance(e, CheckpointEvent)]):
        await bench.checkpoints.restore(event.checkpoint_id)
    assert bench.contents() == {"img.bin": b"\x00\x01", "t.txt": b"t\n"}


async def test_a_move_never_replaces_and_a_folder_is_not_moved(bench: Bench) -> None:
    bench.write("a", "a")
    bench.write("b", "b")
    bench.write("d/c", "c")
    assert "there is such a file" in (await bench.call("files/move", path="a", to="b")).text
    assert "is a folder" in (await bench.call("files/move", path="d", to="e")).text
    assert "is a folder" in (await bench.call("files/delete", path="d")).text
    assert "no file none" in (await bench.call("files/delete", path="none")).text
    assert bench.contents() == {"a": b"a", "b": b"b", "d/c": b"c"}


async def test_a_binary_file_is_not_changed_as_text(bench: Bench) -> None:
    bench.write("img", b"\x00\xff")
    for result in (
        await bench.call("files/write", path="img", content="x"),
        await bench.call("files/edit", path="img", edits=[{"search": "a", "replace": "b"}]),
    ):
        assert not result.ok
        assert "binary" in result.text
    assert bench.contents() == {"img": b"\x00\xff"}


async def test_previews_show_what_will_happen_and_do_nothing(bench: Bench) -> None:
    bench.write("a", "1\n")
    shown = await bench.preview("files/edit", path="a", edits=[{"search": "1", "replace": "2"}])
    assert isinstance(shown, Preview)
    assert shown.text == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    shown = await bench.preview("files/delete", path="a")
    assert isinstance(shown, Preview)
    assert "+++ /dev/null" in shown.text
    wrong = await bench.preview("files/edit", path="a", edits=[{"search": "zzz", "replace": "2"}])
    assert isinstance(wrong, ToolResult)
    wrong = await bench.preview("files/write", path="../a", content="x")
    assert isinstance(wrong, ToolResult)
    assert (bench.contents(), bench.events) == ({"a": b"1\n"}, [])


class Typing(DiskWorkspace):
    """A person types into the file between the tool's reading and its writing, `times` times."""

    times = 1

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        if self.times:
            self.times -= 1
            place = self.roots[0] / patch.files[0].path
            place.write_text(f"typed\n{place.read_text()}")
        return await super().apply(patch, label, exact=exact)


async def test_an_edit_is_made_anew_when_the_file_moved_on_under_it(
    workspace: Path, daiku_home: Path
) -> None:
    bench = Bench(workspace, daiku_home, Typing([workspace]))
    bench.write("a", "one\n")
    result = await bench.call("files/edit", path="a", edits=[{"search": "one", "replace": "two"}])
    assert result.ok, result.text
    assert bench.contents() == {"a": b"typed\ntwo\n"}
    edited = [e for e in bench.events if isinstance(e, Edit)]
    assert len(edited) == 1
    await bench.checkpoints.restore(edited[0].checkpoint_id)
    assert bench.contents() == {"a": b"typed\none\n"}


async def test_a_file_that_keeps_changing_is_given_up_without_a_write(
    workspace: Path, daiku_home: Path
) -> None:
    typing = Typing([workspace])
    typing.times = 99
    bench = Bench(workspace, daiku_home, typing)
    bench.write("a", "one\n")
    result = await bench.call("files/edit", path="a", edits=[{"search": "one", "replace": "two"}])
    assert not result.ok
    assert "read it again" in result.text
    assert bench.contents() == {"a": b"typed\ntyped\ntyped\none\n"}
    assert not [event for event in bench.events if isinstance(event, Edit)]


async def test_reading_numbers_lines_and_goes_on_where_it_stopped(bench: Bench) -> None:
    bench.write("a", "".join(f"line {i}\n" for i in range(1, 5001)))
    whole = await bench.call("files/read", path="a")
    assert whole.text.startswith("a, lines 1 to 1800 of 5000\n   1 | line 1\n")
    assert whole.text.endswith("[Go on with start_line=1801]")
    part = await bench.call("files/read", path="a", start_line=4999)
    assert part.text == "a, lines 4999 to 5000 of 5000\n4999 | line 4999\n5000 | line 5000"
    plain = await bench.call("files/read", path="a", start_line=2, end_line=2, line_numbers=False)
    assert plain.text.endswith("\nline 2")
    beyond = await bench.call("files/read", path="a", start_line=6000)
    assert not beyond.ok
    assert "has 5000 lines" in beyond.text
    assert not (await bench.call("files/read", path="a", start_line=0)).ok


async def test_what_was_read_can_be_searched_with_its_numbers(bench: Bench) -> None:
    bench.write("a", "one\r\n  two\r\n")
    shown = (await bench.call("files/read", path="a")).text
    result = await bench.call("files/edit", path="a", edits=[{"search": shown, "replace": "1\n  2"}])
    assert result.ok, result.text
    assert bench.contents() == {"a": b"1\r\n  2\r\n"}


async def test_a_missing_file_is_answered_with_the_nearest_names(bench: Bench) -> None:
    bench.write("src/main.py", "x")
    bench.write("docs/readme.md", "x")
    assert "src/main.py" in (await bench.call("files/read", path="main.py")).text
    assert "src/main.py" in (await bench.call("files/read", path="src/mian.py")).text


async def test_a_picture_is_given_as_a_picture(bench: Bench) -> None:
    png = picture(1, 1)
    bench.write("p.png", png)
    bench.write("fake.png", b"hello")
    result = await bench.call("files/read", path="p.png")
    assert [(i.media_type, base64.b64decode(i.data)) for i in result.images] == [("image/png", png)]
    fake = await bench.call("files/read", path="fake.png")
    assert (fake.ok, "not a complete PNG" in fake.text) == (False, True)
    bench.write("wide.png", picture(9000, 20))
    wide = await bench.call("files/read", path="wide.png")
    assert [size_of(image.data) for image in wide.images] == [(8000, 17)]
    assert wide.text.endswith("[PNG picture of 9,000 x 20 pixels, shown as 8,000 x 17.]")
    bench.write("scan.tiff", picture(9, 9, "TIFF"))
    assert [i.media_type for i in (await bench.call("files/read", path="scan.tiff")).images] == ["image/png"]


async def test_reading_sees_the_unsaved_buffer(workspace: Path, daiku_home: Path) -> None:
    class Editor(DiskWorkspace):
        async def read(self, path: str) -> TextFile:
            return TextFile(path, "typed, not saved\n", version=7)

    bench = Bench(workspace, daiku_home, Editor([workspace]))
    bench.write("a", "disk\n")
    assert "typed, not saved" in (await bench.call("files/read", path="a")).text


async def test_closed_files_are_neither_listed_nor_read_nor_overwritten(bench: Bench) -> None:
    bench.write(".gitignore", "secret*\nbuild/\n")
    bench.write(".daikuignore", "private\n")
    bench.write("secret.env", "CANARY")
    bench.write("private/key", "CANARY")
    bench.write("build/out", "x")
    bench.write("src/a.py", "x")
    listed = (await bench.call("files/list", depth=9)).text
    assert listed.split("\n") == ["src/", "src/a.py", ".daikuignore", ".gitignore"]
    for path in ("secret.env", "private/key", "./src/../secret.env"):
        for result in (
            await bench.call("files/read", path=path),
            await bench.call("files/write", path=path, content="x"),
            await bench.call("files/edit", path=path, edits=[{"search": "CANARY", "replace": "x"}]),
            await bench.call("files/move", path=path, to="seen"),
        ):
            assert not result.ok
            assert "CANARY" not in result.text
            assert "hidden from the agent" in result.text
    assert (await bench.call("files/write", path="build/new", content="made")).ok
    assert (await bench.call("files/read", path="build/out")).ok


async def test_listing_has_depth_glob_and_an_end(bench: Bench) -> None:
    for i in range(600):
        bench.write(f"many/f{i:03}.txt", "")
    bench.write("a/b/c/d.py", "")
    bench.write("top.py", "")
    assert (await bench.call("files/list")).text.startswith("a/\na/b/\nmany/\nmany/f000.txt")
    assert (await bench.call("files/list", depth=1)).text == "a/\nmany/\ntop.py"
    assert (await bench.call("files/list", glob="*.py")).text == "a/b/c/d.py\ntop.py"
    assert (await bench.call("files/list", path="a", glob="**/c/*.py")).text == "a/b/c/d.py"
    assert "more; give a subfolder" in (await bench.call("files/list", path="many")).text
    assert "is a file" in (await bench.call("files/list", path="top.py")).text
    assert not (await bench.call("files/list", path="none")).ok


async def test_several_roots_are_listed_by_name(tmp_path: Path, daiku_home: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    bench = Bench(tmp_path, daiku_home, DiskWorkspace([tmp_path / "one", tmp_path / "two"]))
    assert (await bench.call("files/list")).text == "one/f\ntwo/f"
    assert (await bench.call("files/edit", path="two/f", edits=[{"search": "two", "replace": "2"}])).ok
    with pytest.raises(DaikuError):
        await bench.workspace.read("f")


async def test_a_whole_file_is_not_written_over_what_somebody_else_changed_since_it_was_seen(
    bench: Bench,
) -> None:
    bench.write("a.txt", "one\ntwo\n")
    await bench.call("files/read", path="a.txt")
    bench.write("a.txt", "one\ntyped\ntwo\n")
    refused = await bench.call("files/write", path="a.txt", content="1\n2\n")
    assert not refused.ok
    assert "+typed" in refused.text
    assert (bench.root / "a.txt").read_text() == "one\ntyped\ntwo\n"
    assert (await bench.call("files/write", path="a.txt", content="1\ntyped\n2\n")).ok
    assert (await bench.call("files/write", path="a.txt", content="own text may be replaced\n")).ok
    bench.write("b.txt", "never seen\n")
    unread = await bench.call("files/write", path="b.txt", content="new\n")
    assert not unread.ok
    assert "never seen" in unread.text
    assert (bench.root / "b.txt").read_text() == "never seen\n"
    assert (await bench.call("files/write", path="b.txt", content="new\n")).ok
    bench.write("b.txt", "other\n")
    assert not (await bench.call("files/patch", patch="File: b.txt\n```\nwhole\n```\n")).ok


async def test_a_notebook_is_read_and_edited_by_its_cells(bench: Bench) -> None:
    bench.write("n.ipynb", SAMPLE)
    read = await bench.call("files/read", path="n.ipynb", start_line=4, end_line=6)
    assert "a new cell begins with `# %% cell new [code]`" in read.text
    assert read.plain is not None
    assert "cell new" not in read.plain
    assert "4 | # %% cell 2 [code python] outputs: stdout 2 lines\n5 | x = 1" in read.text
    done = await bench.call("files/edit", path="n.ipynb", edits=[{"search": "x = 1", "replace": "x = 7"}])
    assert "-x = 1\n+x = 7" in done.text
    assert (bench.root / "n.ipynb").read_text() == SAMPLE.replace("x = 1", "x = 7")
    twice = await bench.call(
        "files/edit", path="n.ipynb", edits=[{"search": "# %% cell 2", "replace": "# %% cell 1"}]
    )
    assert "Cell 1 stands twice" in twice.text
    made = await bench.call("files/write", path="new.ipynb", content="# %% cell new [code]\n1 + 1\n")
    assert made.ok
    assert '"nbformat": 4' in (bench.root / "new.ipynb").read_text()
    patch = "--- a/n.ipynb\n+++ b/n.ipynb\n@@ -5,2 +5,3 @@\n-x = 7\n+x = 8\n print(x)\n"
    assert (await bench.call("files/patch", patch=patch)).ok
    assert (bench.root / "n.ipynb").read_text() == SAMPLE.replace("x = 1", "x = 8")
    assert (await bench.call("files/move", path="n.ipynb", to="m.ipynb")).ok
    assert (bench.root / "m.ipynb").read_text() == SAMPLE.replace("x = 1", "x = 8")
