"""Changes of a work tree, parsed from what git prints."""

from __future__ import annotations

import pytest

from daiku.domain.work.patches import FileStat
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import Leftover
from daiku.team.rules.proof.tree_changes import parse_tree_changes, replace_recorded

RAW = ":100644 100644 aaaaaaa bbbbbbb"


def test_each_path_has_its_kind_and_its_lines() -> None:
    """B23.2"""
    listing = (
        f"{RAW} M\0a.py\0:000000 100644 0000000 ccccccc A\0new\tname\0:100644 000000 ddddddd 0000000 D\0old\0"
        f"{RAW} T\0link\0" + "2\t1\ta.py\0" + "3\t0\tnew\tname\0" + "0\t4\told\0" + "-\t-\tlink\0"
    )
    assert parse_tree_changes(listing, "").files == (
        FileStat(path="a.py", kind="edit", added=2, removed=1),
        FileStat(path="new\tname", kind="create", added=3),
        FileStat(path="old", kind="delete", removed=4),
        FileStat(path="link", kind="edit"),
    )


def test_a_name_that_is_not_utf8_can_be_written_down() -> None:
    (stat,) = parse_tree_changes(f"{RAW} M\0caf\udce9\0" + "1\t0\tcaf\udce9\0", "").files
    assert stat.path == "caf\ufffd"
    assert stat.model_dump_json()


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["--- a/x.sql", "+++ b/x.sql", "@@ -1 +1,2 @@", "--- TODO", "+ok", "++++ TODO"], 0),
        (["--- a/x.py", "+++ b/x.py", "@@ -1 +1 @@", "-# TODO", "+done"], -1),
        (["--- a/x.py", "+++ b/x.py", "@@ -0,0 +1 @@", "+# TODO", "\\ No newline at end of file"], 1),
        (["--- a/x.py", "+++ b/x.py", "@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+# TODO"], 1),
        (["--- a/x.py", "+++ b/x.py", "@@ -1 +0,0 @@ # TODO", "-ok"], 0),
        (["--- a/x.pyi", "+++ b/x.pyi", "@@ -0,0 +1 @@", "+    ..."], 0),
    ],
)
def test_unfinished_lines_are_those_of_the_hunks(lines: list[str], found: int) -> None:
    leftovers = parse_tree_changes("", "\n".join(lines)).leftovers
    counts = {each.text: each.times for each in leftovers}
    assert sum(counts.values()) == found, counts


def test_a_line_that_looks_like_a_header_does_not_change_the_path() -> None:
    """B23.2"""
    patch = (
        "--- a/one.lua\n+++ b/one.lua\n@@ -1,2 +1,2 @@\n--- a/b\n-x\n+++ b/c\n+raise NotImplementedError\n"
    )
    (left,) = parse_tree_changes("", patch).leftovers
    assert left == Leftover("one.lua", "raise NotImplementedError", 1)


def test_created_and_deleted_files_are_named_by_the_side_that_exists() -> None:
    """B23.2"""
    patch = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+# TODO a\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-# TODO b\n"
    assert parse_tree_changes("", patch).leftovers == (
        Leftover("new.py", "# TODO a", 1),
        Leftover("old.py", "# TODO b", -1),
    )


def test_a_quoted_name_is_read() -> None:
    patch = '--- /dev/null\n+++ "b/say \\"x\\".py"\n@@ -0,0 +1 @@\n+# TODO\n'
    assert parse_tree_changes("", patch).leftovers[0].path == 'say "x".py'


def test_the_tree_replaces_the_record() -> None:
    """B23.2"""
    done = Evidence(
        files=(FileStat(path="gone.py", kind="edit"),), leftovers=(Leftover("gone.py", "# TODO", 1),)
    )
    now = replace_recorded(done, parse_tree_changes("1\t0\tb.py\0", ""))
    assert [each.path for each in now.files] == ["b.py"]
    assert now.leftovers == ()
