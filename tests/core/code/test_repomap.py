"""Ranking of a repository's files along their imports, and the map as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from daiku.tools.rules.code.imports import Import, Statements
from daiku.tools.rules.code.mapview import render_map
from daiku.tools.rules.code.modules import Modules
from daiku.tools.rules.code.repomap import Ranks, SourceFile, Tag, classify_path, rank_files


def define(name: str, line: int = 1, indent: int = 0, kind: str = "function") -> Tag:
    return Tag(name, kind, line, f"def {name}():", is_definition=True, indent=indent)


def use(name: str) -> Tag:
    return Tag(name, "call", 1, "", is_definition=False)


def file(*tags: Tag, imports: Sequence[str] = (), passes_on: bool = False, lines: int = 100) -> SourceFile:
    return SourceFile(tags, Statements(tuple(Import(m, reexports=passes_on) for m in imports)), lines)


def ranked(files: Mapping[str, SourceFile], focus: Sequence[str] = (), named: Sequence[str] = ()) -> Ranks:
    return rank_files(files, Modules(frozenset(files)), focus, named)


def words(text: str) -> int:
    return len(text.split())


def drawn(files: Mapping[str, SourceFile], budget: int, total: int = 10, known: Sequence[str] = ()) -> str:
    return render_map(files, ranked(files), known, budget, words, total)


def test_what_many_use_ranks_above_what_nobody_uses() -> None:
    files = {
        "core.py": file(define("engine"), define("spare", 2)),
        **{f"u{i}.py": file(use("engine"), define(f"f{i}"), imports=["core"]) for i in range(5)},
    }
    ranks = ranked(files)
    assert ranks.names["core.py"]["engine"] > 5 * ranks.names["core.py"]["spare"]
    assert ranks.names["core.py"]["engine"] > max(ranks.names[f"u{i}.py"][f"f{i}"] for i in range(5))


def test_a_name_leads_only_to_files_that_are_imported() -> None:
    files = {
        "a.ts": file(define("openDoor")),
        "b.ts": file(define("openDoor")),
        **{f"u{i}.ts": file(use("openDoor"), imports=["./a"]) for i in range(4)},
    }
    names = ranked(files).names
    assert names["a.ts"]["openDoor"] > 5 * names["b.ts"]["openDoor"]


def test_names_of_built_in_types_lead_nowhere() -> None:
    files = {
        "odd.ts": file(define("trim"), define("trimEverything", 2)),
        **{f"u{i}.ts": file(use("trim"), use("trimEverything"), imports=["./odd"]) for i in range(4)},
    }
    names = ranked(files).names["odd.ts"]
    assert names["trimEverything"] > 10 * names["trim"]


def test_a_name_is_found_through_files_that_pass_it_on() -> None:
    files = {
        "lib/deep.ts": file(define("deepThing")),
        "lib/other.ts": file(define("otherThing")),
        "lib/index.ts": file(imports=["./deep", "./other"], passes_on=True),
        **{f"u{i}.ts": file(use("deepThing"), imports=["./lib"]) for i in range(4)},
    }
    names = ranked(files).names
    assert names["lib/deep.ts"]["deepThing"] > 5 * names["lib/other.ts"]["otherThing"]


def test_without_understood_imports_only_a_rare_name_leads_anywhere() -> None:
    files = {f"f{i}.rb": file(define("run_it"), use("run_it")) for i in range(30)}
    files |= {"one.rb": file(define("rare_name")), "user.rb": file(use("run_it"), use("rare_name"))}
    names = ranked(files).names
    assert names["one.rb"]["rare_name"] > 5 * names["f3.rb"]["run_it"]


def test_size_and_ties_count_and_what_is_beside_the_code_comes_last() -> None:
    files = {
        "small.py": file(define("a"), lines=20),
        "large.py": file(define("b"), lines=900),
        "ties.py": file(define("c"), imports=["small", "large"], lines=20),
        "test_large.py": file(define("d"), imports=["large", "small", "ties"], lines=5000),
    }
    scores = ranked(files).files
    assert scores["large.py"] > scores["small.py"] > scores["test_large.py"]
    assert scores["ties.py"] > scores["test_large.py"]


def test_focus_pulls_towards_what_it_uses_and_named_files_come_first() -> None:
    files = {
        "a.py": file(define("left_part")),
        "b.py": file(define("right_part")),
        "x.py": file(use("left_part"), imports=["a"]),
        "y.py": file(use("right_part"), imports=["b"]),
    }
    near_x = ranked(files, focus=["x.py"]).names
    near_y = ranked(files, focus=["y.py", "gone.py"]).names
    assert near_x["a.py"]["left_part"] > near_x["b.py"]["right_part"]
    assert near_y["b.py"]["right_part"] > near_y["a.py"]["left_part"]
    scores = ranked(files, named=["y.py"]).files
    assert max(scores, key=lambda path: scores[path]) == "y.py"


def test_ranks_do_not_grow_or_vanish() -> None:
    files = {
        f"f{i}.py": file(
            define(f"n{i}x"), use(f"n{(i + 1) % 9}x"), imports=[f"f{(i + 1) % 9}", f"f{(i * 2) % 9}"]
        )
        for i in range(9)
    }
    names = ranked(files).names
    assert sum(sum(each.values()) for each in names.values()) == pytest.approx(1, abs=0.4)
    assert ranked({}) == Ranks({}, {})


CORE = {
    "core.py": file(
        define("Engine", 3, kind="class"), define("turn_on", 7, 4), define("get", 9, 4), lines=900
    ),
    "sub/user.py": file(define("start_user", 2), use("Engine"), use("turn_on"), imports=["core"]),
}


def test_the_map_names_files_by_folder_with_signatures_in_the_order_of_lines() -> None:
    assert drawn(CORE, 100) == (
        "core.py:\n    3 def Engine():\n    7     def turn_on():\n    9     def get():\n"
        "sub/\n  user.py:\n    2 def start_user():"
    )
    assert drawn(CORE, 100, known=["core.py"]) == "sub/\n  user.py:\n    2 def start_user():"


def test_the_map_keeps_its_budget_files_before_signatures() -> None:
    files = {f"d{i % 7}/file{i}.py": file(define(f"do_{i}"), define(f"and_{i}", 2)) for i in range(200)}
    for budget in (20, 60, 150, 400):
        text = drawn(files, budget)
        assert budget * 0.6 < words(text) <= budget
    both = drawn(CORE, 16)
    assert "core.py" in both
    assert "user.py:" in both
    assert drawn(CORE, 1) == ""


def test_tests_and_generated_files_are_left_out_unless_there_is_nothing_else() -> None:
    tests = {"tests/test_a.py": file(define("test_it")), "api_pb2.py": file(define("Api"))}
    assert "test" not in drawn({**CORE, **tests}, 100)
    assert "tests/" in drawn({"tests/test_a.py": tests["tests/test_a.py"]}, 100)


def test_a_large_tree_begins_with_a_short_table_of_folders() -> None:
    files = {f"pkg/part{i % 6}/sub/file{i}.py": file(define(f"Thing{i}", kind="class")) for i in range(600)}
    text = drawn(files, 500, total=1200)
    head, _, rest = text.partition("\n\n")
    lines = head.split("\n")
    assert lines[0] == "1,200 files. Code by folder (files: what they define mostly):"
    assert lines[1] == "pkg/part0/ (100: Thing0, Thing102, Thing108)"
    assert len(lines) <= 11
    assert words(text) <= 500
    assert "file0.py: Thing0 1" in rest or "file0.py:" in rest


def test_what_a_file_is_besides_the_code_is_told_by_its_path() -> None:
    kinds = {
        "test": ["tests/a.py", "src/a.test.ts", "pkg/a_test.go", "src/test/java/X.java", "UserTest.java", "conftest.py",
                 "src/__tests__/x.ts", "apps/test-setup.js", "src/test/vscode-vitest-stub.ts", "x.stories.tsx", "testdata/a.go"],
        "generated": ["a/catalog.generated.ts", "x_pb2.py", "api.pb.go", "a.min.js", "types.d.ts", "generated/a.ts"],
        "foreign": ["vendor/x/y.go", "third_party/a.c", "dist/a.js", "a/node_modules/b/c.js"],
        "example": ["docs/a.py", "examples/one/main.rs", "benchmarks/x.py"],
        "script": ["scripts/a.py", "setup.py", "vite.config.ts", ".github/x.py"],
        "": ["src/a.py", "latest.py", "contest/a.ts", "src/protest.py", "pkg/attest.go", "lib/specification.py", "src/context.ts"],
    }  # fmt: skip
    assert {path: classify_path(path) for each in kinds.values() for path in each} == {
        path: kind for kind, each in kinds.items() for path in each
    }
