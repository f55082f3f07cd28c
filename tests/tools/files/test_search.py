"""Finding: text with and without ripgrep, symbols, and the map of a repository."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from pydantic import JsonValue

from daiku.domain.tools import ToolCall, ToolResult
from daiku.settings.config import Config
from daiku.tools.files import search
from daiku.tools.files.engines import Query, build_arguments, find_ripgrep
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.workspace import programs
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from tests.conftest import ROOT

REGISTRY = ToolRegistry(SEARCH_TOOLS)


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(search, "find_ripgrep", lambda roots: "")
    elif shutil.which("rg") is None:
        # `npm test` installs ripgrep; pytest alone may run without it.
        pytest.skip("no ripgrep on this machine")
    return request.param


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


async def call(root: Path, tool: str, **args: JsonValue) -> ToolResult:
    workspace = DiskWorkspace([root])
    context = ToolContext(
        session="s",
        run="r",
        call_id="c",
        workspace=workspace,
        checkpoints=CheckpointStore(root.parent / "c", workspace),
        config=Config(),
        emit=lambda event: None,
    )
    return await REGISTRY.call(ToolCall(tool=tool, args=args), context)


FILES = {
    "src/a.py": "def alpha():\n    return beta(1)\n",
    "src/b.ts": "const beta = (x: number) => x;\nbeta(2) // BETA\n",
    ".github/ci.yml": "beta: 1\n",
    ".gitignore": "build\n",
    ".daikuignore": "private\n",
    "build/x.py": "beta\n",
    "private/y.py": "beta\n",
    ".git/config": "beta\n",
    "src/beta[1].txt": "a.b*c\n",
}


async def test_plain_text_is_found_where_the_agent_may_look(workspace: Path, engine: str) -> None:
    write(workspace, **FILES)
    found = await call(workspace, "search/text", pattern="beta")
    assert found.text == (
        ".github/ci.yml\n1:beta: 1\n\nsrc/a.py\n2:    return beta(1)\n\n"
        "src/b.ts\n1:const beta = (x: number) => x;\n2:beta(2) // BETA"
    )


def hits(text: str) -> list[str]:
    """The lines that match, as `path:line`."""
    found: list[str] = []
    path = ""
    for line in text.split("\n"):
        number, colon, _ = line.partition(":")
        if colon and number.isdigit():
            found.append(f"{path}:{number}")
        elif line and not line.startswith("[…"):
            path = line
    return found


async def test_case_path_glob_and_expressions_narrow_and_widen(workspace: Path, engine: str) -> None:
    write(workspace, **FILES)

    async def lines(**args: JsonValue) -> list[str]:
        return hits((await call(workspace, "search/text", **args)).text)

    assert await lines(pattern="BETA") == ["src/b.ts:2"]
    assert await lines(pattern="BETA", ignore_case=True, path="src/b.ts") == ["src/b.ts:1", "src/b.ts:2"]
    assert await lines(pattern="beta", glob="*.py") == ["src/a.py:2"]
    assert await lines(pattern="a.b*c", literal=True) == ["src/beta[1].txt:1"]
    assert await lines(pattern=r"^def \w+") == ["src/a.py:1"]
    assert await lines(pattern=r"^def \w+", literal=True) == []
    assert await lines(pattern="beta", glob="build/**") == []
    assert await lines(pattern="zzz") == []


async def test_patterns_that_look_like_flags_are_patterns(workspace: Path, engine: str) -> None:
    (workspace / "x").write_text("#!/bin/sh\ntouch PWNED\n")
    (workspace / "x").chmod(0o755)
    write(workspace, f="say --pre=./x here\n")
    found = await call(workspace, "search/text", pattern="--pre=./x")
    assert found.text == "f\n1:say --pre=./x here"
    await call(workspace, "search/text", pattern="a", glob="--pre=./x")
    await call(workspace, "search/text", pattern="a", path="--pre=./x")
    assert not list(workspace.glob("**/PWNED"))


def test_no_value_of_a_model_stands_as_a_flag_of_its_own() -> None:
    flags = build_arguments(Query("--pre=./x", globs=("--hostname-bin=./x",)))
    assert {"--glob=--hostname-bin=./x", "--no-config"} <= set(flags)
    assert flags[-2:] == ["--regexp", "--pre=./x"]
    assert not any(flag.startswith(("--pre=", "--hostname-bin")) for flag in flags[:-1])


async def test_an_unreadable_expression_is_taken_as_plain_text_and_that_is_said(
    workspace: Path, engine: str
) -> None:
    write(workspace, **FILES)
    found = await call(workspace, "search/text", pattern="def alpha(")
    head, *lines = found.text.split("\n")
    assert head.startswith("The pattern is no regular expression")
    assert head.endswith("was taken as plain text.")
    assert lines == ["src/a.py", "1:def alpha():"]


async def test_what_matches_only_as_plain_text_or_in_another_case_is_found_and_said(
    workspace: Path, engine: str
) -> None:
    write(workspace, **{"a.txt": "x = a[0] + b\nClass Alpha\n"})
    plain = await call(workspace, "search/text", pattern="a[0] + b")
    assert plain.text.split("\n")[1:] == ["a.txt", "1:x = a[0] + b"]
    assert "as plain text" in plain.text
    case = await call(workspace, "search/text", pattern="class alpha")
    assert case.text.split("\n")[1:] == ["a.txt", "2:Class Alpha"]
    assert "upper and lower case" in case.text
    both = await call(workspace, "search/text", pattern="A[0] +")
    assert both.text.split("\n")[1:] == ["a.txt", "1:x = a[0] + b"]
    nothing = await call(workspace, "search/text", pattern="a[1] +")
    assert nothing.text == (
        "Nothing matches 'a[1] +': neither as a regular expression nor as plain text nor as a regular expression "
        "in any case nor as plain text in any case."
    )


PATTERNS = [
    r"class \w+|def \w+", r"def (add|mul)", r"^import ", r"\bself\b", r"return [a-z]+\(", r"TODO|FIXME", r"[A-Z]{3,}",
    r"\d+\.\d+", r"async def", r"raise \w+Error", r"=> \{", r"interface \w+", r"^\s*#", r"\(\)$", r"https?://",
    r"'[^']*'", r"0x[0-9a-f]+", r"if .* is None", r"lambda", r"\$\{", r"export (const|function)", r"\.map\(", r"日本",
    r"==", r"\[\]", r"@\w+", r"\s{8,}\S", r"(?i)error", r"a{2}", r"\\n",
]  # fmt: skip


# `npm test` installs ripgrep; pytest alone may run without it.
@pytest.mark.skipif(shutil.which("rg") is None, reason="no ripgrep on this machine")
@pytest.mark.parametrize("folder", ["tests/core", "extension/src", "prompts"])
async def test_thirty_patterns_find_what_ripgrep_finds(folder: str, engine: str) -> None:
    root = ROOT / folder
    for pattern in PATTERNS:
        told = (await call(root, "search/text", pattern=pattern, limit=2000)).text
        command = ["rg", "--no-config", "-n", "--no-heading", "--sort=path", "-e", pattern, "."]
        run = partial(subprocess.run, command, cwd=root, capture_output=True, text=True, check=False)
        found = (await asyncio.to_thread(run)).stdout.splitlines()
        wanted = [":".join(line.removeprefix("./").split(":", 2)[:2]) for line in found]
        if not wanted:
            assert "matches" in told, pattern
            continue
        shown = hits(told)
        assert shown == wanted[: len(shown)], pattern
        last = told.split("\n")[-1]
        left = last.removeprefix("[… ").partition(" ")[0].replace(",", "")
        assert len(wanted) - len(shown) == (int(left) if last.startswith("[…") else 0), pattern


async def test_an_expression_that_never_ends_is_stopped_or_refused(workspace: Path, engine: str) -> None:
    write(workspace, f="a" * 5000 + "b\n")
    started = time.monotonic()
    await call(workspace, "search/text", pattern="(a+)+$")
    assert time.monotonic() - started < 2


async def test_many_matches_end_with_what_is_left(workspace: Path, engine: str) -> None:
    for i in range(5):
        write(workspace, **{f"f{i}": "x\n" * 100})
    found = await call(workspace, "search/text", pattern="x")
    assert len(hits(found.text)) == 200
    assert found.text.endswith(
        "\n[… 300 more matches in 3 files; narrow it with path, glob or a longer pattern …]"
    )
    few = await call(workspace, "search/text", pattern="x", limit=150)
    assert "[… 350 more matches in 4 files; " in few.text
    files = await call(workspace, "search/text", pattern="x", mode="files", limit=4)
    assert files.text.startswith("f0\nf1\nf2\nf3\n[… 100 more matches in 1 file; ")


async def test_a_long_line_is_cut_and_a_long_answer_ends_early(workspace: Path, engine: str) -> None:
    write(workspace, long="x" * 5000 + "\n", many=("x" * 390 + "\n") * 100)
    found = (await call(workspace, "search/text", pattern="x")).text
    assert f"1:{'x' * 400} [… line cut …]" in found
    assert len(found) < 30_000
    assert "more matches in 1 file" in found


SOURCE = "def one():\n    return 1\n\n\ndef two():\n    if x:\n        return 2\n    return 3\n\n\ndef three():\n    pass\n"


async def test_lines_around_a_match_are_shown_with_their_indentation(workspace: Path, engine: str) -> None:
    write(workspace, **{"a.py": SOURCE})
    both = await call(workspace, "search/text", pattern="if x|pass", context=1)
    assert (
        both.text == "a.py\n5-def two():\n6:    if x:\n7-        return 2\n--\n11-def three():\n12:    pass"
    )
    touching = await call(workspace, "search/text", pattern="return", context=1, limit=2)
    assert touching.text.split("\n")[:-1] == [
        "a.py", "1-def one():", "2:    return 1", "3-", "--", "6-    if x:", "7:        return 2",
    ]  # fmt: skip
    assert "1 more match in 1 file" in touching.text


async def test_files_alone_and_counts(workspace: Path, engine: str) -> None:
    write(workspace, **FILES)
    assert (await call(workspace, "search/text", pattern="beta", mode="files")).text == (
        ".github/ci.yml\nsrc/a.py\nsrc/b.ts"
    )
    assert (await call(workspace, "search/text", pattern="beta", mode="count")).text == (
        ".github/ci.yml: 1\nsrc/a.py: 1\nsrc/b.ts: 2\n4 matches in 3 files"
    )
    assert "Nothing matches" in (await call(workspace, "search/text", pattern="zzz", mode="count")).text


async def test_a_match_may_span_lines(workspace: Path, engine: str) -> None:
    write(workspace, **{"a.py": SOURCE, "b.txt": "\\n\n"})
    found = await call(workspace, "search/text", pattern=r"def one.*?return", multiline=True)
    assert found.text == "a.py\n1:def one():\n2:    return 1"
    told = await call(workspace, "search/text", pattern=r"two\(\):\n +if")
    assert told.text == "a.py\n5:def two():\n6:    if x:"
    assert (await call(workspace, "search/text", pattern=r"\\n")).text == "b.txt\n1:\\n"


async def test_globs_with_braces_commas_folders_and_exclusions(workspace: Path, engine: str) -> None:
    for name in ("src/a.ts", "src/deep/b.tsx", "lib/c.js", "d.py"):
        write(workspace, **{name: "needle\n"})

    async def names(glob: str) -> str:
        return (await call(workspace, "search/text", pattern="needle", mode="files", glob=glob)).text

    assert await names("*.{ts,tsx}") == "src/a.ts\nsrc/deep/b.tsx"
    assert await names("*.js, *.py") == "d.py\nlib/c.js"
    assert await names("src/**") == "src/a.ts\nsrc/deep/b.tsx"
    assert await names("src/**/*.tsx") == "src/deep/b.tsx"
    assert await names("!*.py") == "lib/c.js\nsrc/a.ts\nsrc/deep/b.tsx"
    assert (
        await names("*.ts,!src/**")
        == "Nothing matches 'needle': neither as a regular expression nor as a regular expression in any case."
    )


async def test_what_no_engine_takes_is_said(workspace: Path, engine: str) -> None:
    write(workspace, **{"a.txt": "a(?=b)\n\\1\n"})
    for pattern, why in {"a(?=b)": "look-around", r"(a)\1": "backreferences"}.items():
        told = (await call(workspace, "search/text", pattern=pattern)).text
        assert why in told.split("\n")[0]
        assert "was taken as plain text" in told
    posix = await call(workspace, "search/text", pattern=r"^[[:alpha:]]\(")
    assert posix.text == "a.txt\n1:a(?=b)"
    assert (await call(workspace, "search/text", pattern=r"^\x{61}")).text == "a.txt\n1:a(?=b)"


async def test_links_that_go_round_do_not_hang_a_search(workspace: Path, engine: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "s").write_text("CANARY")
    (workspace / "loop").symlink_to(workspace)
    (workspace / "out").symlink_to(tmp_path / "outside")
    os.mkfifo(workspace / "pipe")
    write(workspace, f="CANARY in\n")
    started = time.monotonic()
    found = await call(workspace, "search/text", pattern="CANARY")
    assert found.text == "f\n1:CANARY in"
    assert not (await call(workspace, "search/text", pattern="CANARY", path="out")).ok
    assert time.monotonic() - started < 2


def test_a_ripgrep_of_the_workspace_is_never_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, good, link = workspace / "rg", tmp_path / "bin" / "rg", tmp_path / "linked" / "rg"
    good.parent.mkdir()
    link.parent.mkdir()
    for program in (evil, good):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    link.symlink_to(evil)
    path = os.pathsep.join([".", "", str(workspace), str(link.parent), str(good.parent)])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    assert find_ripgrep((workspace,)) == str(good)


async def test_a_ripgrep_that_does_not_work_is_told_and_not_taken_for_a_bad_pattern(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\necho 'error: no such flag' >&2\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setattr(search, "find_ripgrep", lambda roots: str(program))
    for pattern in ("a", "a|b"):
        told = await call(workspace, "search/text", pattern=pattern)
        assert (told.ok, told.text) == (False, "The search cannot be made: no such flag")


SOURCES = {
    "lib/shapes.py": "class Shape:\n    def area(self):\n        return 0\n\n\nclass Square(Shape):\n    pass\n\n\ndef unused_helper():\n    pass\n",
    "lib/use.py": "from lib.shapes import Square, Shape\n\n\ndef main():\n    print(Square().area())\n    Shape()\n",
    "web/app.tsx": "export const renderShape = (s: Shape) => s.area();\ninterface Shape { area(): number }\nclass Panel { draw() { renderShape(null!); } }\n",
    "go/m.go": "package m\n\nfunc BuildPlan(x int) int { return x }\n\ntype Plan struct{}\n\nfunc use() { BuildPlan(1) }\n",
    "r/l.rs": "pub struct Planner;\nimpl Planner { pub fn make_plan(&self) {} }\n",
    "j/A.java": "class Account { int balance() { return 0; } }\n",
    "rb/x.rb": "class Ruby\n  def sparkle\n  end\nend\n",
}


async def test_symbols_are_found_in_every_language_exact_names_first(workspace: Path) -> None:
    write(workspace, **SOURCES)
    for name, expected in {
        "Square": "lib/shapes.py:6: class class Square(Shape):",
        "renderShape": "web/app.tsx:1: function export const renderShape = (s: Shape) => s.area();",
        "Panel": "web/app.tsx:3: class class Panel { draw() { renderShape(null!); } }",
        "BuildPlan": "go/m.go:3: function func BuildPlan(x int) int { return x }",
        "Planner.make_plan": "r/l.rs:2: method impl Planner { pub fn make_plan(&self) {} }",
        "balance": "j/A.java:1: method class Account { int balance() { return 0; } }",
        "sparkle": "rb/x.rb:2: def def sparkle",
    }.items():
        assert (await call(workspace, "search/symbols", name=name)).text == expected
    assert (await call(workspace, "search/symbols", name="shape")).text.startswith(
        "lib/shapes.py:1: class class Shape"
    )
    assert "search__text finds its uses" in (await call(workspace, "search/symbols", name="Nowhere")).text


async def test_a_changed_file_is_read_again(workspace: Path) -> None:
    write(workspace, **{"a.py": "def first():\n    pass\n"})
    assert "a.py:1" in (await call(workspace, "search/symbols", name="first")).text
    write(workspace, **{"a.py": "\n\ndef first():\n    pass\n"})
    assert "a.py:3" in (await call(workspace, "search/symbols", name="first")).text


async def test_the_map_shows_what_others_use_first_within_its_budget(workspace: Path) -> None:
    write(workspace, **SOURCES)
    for i in range(40):
        write(workspace, **{f"noise/n{i}.py": f"def lonely_{i}():\n    pass\n"})
    text = (await call(workspace, "search/map", budget=150)).text
    assert text.startswith("lib/\n  shapes.py:\n    1 class Shape:\n")
    assert len(text) < 150 * 4
    assert text.index("lib/") < text.index("noise/")


async def test_a_folder_without_source_has_no_map(workspace: Path) -> None:
    write(workspace, **{"a.txt": "x"})
    assert "no source code" in (await call(workspace, "search/map")).text


async def test_without_ripgrep_an_empty_answer_tells_what_classes_leave_out(
    workspace: Path, engine: str
) -> None:
    """A23.1: RE2 searches instead, whose classes match ASCII only."""
    write(workspace, **{"a.txt": "größe = 1\n"})
    by_class = (await call(workspace, "search/text", pattern=r"gr\w+e")).text
    assert by_class == "a.txt\n1:größe = 1" if engine == "ripgrep" else "match ASCII only" in by_class
    by_letter = await call(workspace, "search/text", pattern=r"gr\pL+e")
    assert by_letter.text == "a.txt\n1:größe = 1"
    nothing = await call(workspace, "search/text", pattern="zzz.")
    assert "ASCII" not in nothing.text
