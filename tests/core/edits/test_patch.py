"""Every form of a patch: unified diffs, apply-patch, blocks, whole files; many files at once, all or nothing."""

from __future__ import annotations

import re

from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.changes.diff import render_patch
from daiku.edits.rules.fileblocks import parse_file_blocks
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import build_patch, list_paths, parse_patch
from tests.cases import for_each


def apply(text: str, **files: str | None) -> dict[str, str | None]:
    """The files after the patch; a keyword `a_py` is the file `a.py`."""
    before = {name.replace("_", "."): content for name, content in files.items()}
    intents = parse_patch(text)
    assert not isinstance(intents, Refusal), intents.text
    patch = build_patch(intents, {**dict.fromkeys(list_paths(intents)), **before})
    assert not isinstance(patch, Refusal), patch.text
    after = dict(before)
    for change in patch.files:
        after.pop(change.path, None)
        if change.new is not None:
            after[change.to or change.path] = change.new
    return after


def refuse(text: str, **files: str | None) -> str:
    before = {name.replace("_", "."): content for name, content in files.items()}
    intents = parse_patch(text)
    if isinstance(intents, Refusal):
        return intents.text
    patch = build_patch(intents, {**dict.fromkeys(list_paths(intents)), **before})
    assert isinstance(patch, Refusal), patch
    return patch.text


def test_a_diff_over_many_files_creates_edits_deletes_and_renames() -> None:
    text = """diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1 +1 @@
-x
+y
--- /dev/null
+++ b/made.py
@@ -0,0 +1,2 @@
+first
+second
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-bye
"""
    after = apply(text, a_py="one\ntwo\n", old_py="x\n", gone_py="bye\n")
    assert after == {"a.py": "one\n2\n", "new.py": "y\n", "made.py": "first\nsecond\n"}


def test_wrong_line_numbers_and_counts_and_forgotten_blanks_do_no_harm() -> None:
    text = "--- a.py\n+++ a.py\n@@ -90,9 +77,1 @@ def f\nalpha\n-beta\n+BETA\n\n gamma\n"
    assert apply(text, a_py="zero\nalpha\nbeta\n\ngamma\n") == {"a.py": "zero\nalpha\nBETA\n\ngamma\n"}


def test_a_diff_in_a_fence_with_crlf_applies_to_an_lf_file() -> None:
    text = "```diff\r\n--- a/a.py\r\n+++ b/a.py\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n```\r\n"
    assert apply(text, a_py="a\n") == {"a.py": "b\n"}


def test_an_lf_diff_applies_to_a_crlf_file_and_adds_crlf() -> None:
    text = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n"
    assert apply(text, a_py="a\r\nb\r\n") == {"a.py": "a\r\nc\r\nd\r\n"}


def test_the_final_newline_is_as_the_diff_says_or_as_it_was() -> None:
    head = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n"
    assert apply(head + "+b\n", a_py="a") == {"a.py": "b"}
    assert apply(head + "+b\n\\ No newline at end of file\n", a_py="a\n") == {"a.py": "b"}
    assert apply(head + "\\ No newline at end of file\n+b\n", a_py="a") == {"a.py": "b\n"}


def test_removed_and_added_lines_that_look_like_file_headers_are_lines() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ plus\n x\n"
    assert apply(text, q_sql="-- old comment\nx\n") == {"q.sql": "++ plus\nx\n"}


def test_repeated_context_is_settled_by_the_line_number_or_by_the_order_or_refused() -> None:
    body = "x\ny\n" * 3
    assert apply("--- a/a.py\n+++ b/a.py\n@@ -3,2 +3,2 @@\n x\n-y\n+z\n", a_py=body) == {
        "a.py": "x\ny\nx\nz\nx\ny\n"
    }
    assert "3 places" in refuse("--- a/a.py\n+++ b/a.py\n@@ @@\n x\n-y\n+z\n", a_py=body)
    ordered = "*** Begin Patch\n*** Update File: a.py\n@@\n-only\n+ONLY\n@@\n x\n-y\n+z\n*** End Patch"
    assert apply(ordered, a_py="x\ny\nonly\nx\ny\n") == {"a.py": "x\ny\nONLY\nx\nz\n"}


def test_hunks_that_meet_are_refused() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n-b\n+1\n@@\n-b\n+2\n*** End Patch"
    assert "same lines" in refuse(text, a_py="a\nb\n")


@for_each(
    ("text", "said"),
    [
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-zzz\n+b\n", "not in the file"),
        ("--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n", "no such file"),
        ("--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+b\n", "there is such a file"),
        ("--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "does not hold all of its lines"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1,2 +0,0 @@\n-a\n-b\n", "empty"),
        ("diff --git a/a.bin b/a.bin\nGIT binary patch\nliteral 3\n", "binary"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n", "cut off"),
        ("*** Begin Patch\n*** Add File: a.py\n+b\n*** End Patch", "there is such a file"),
        ("*** Begin Patch\n*** Add File: n.py\nb\n*** End Patch", "begins with +"),
        ("*** Begin Patch\n*** Delete File: none.py\n*** End Patch", "no such file"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n a\n*** End Patch", "changes nothing"),
        ("--- a/a.py\n+++ b/a.py\n@@ @@\n+new\n", "does not say where"),
        ("*** Begin Patch\n*** Move File: a.py\n*** End Patch", "neither"),
        ("a.py\n<<<<<<< SEARCH\na\n=======\nb\n", "cut off"),
        ("a.py\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE", "SEARCH part is empty"),
        ("File: `a.py`:\n```py\nx = 1\n", "code fence is not closed"),
        ("please change a.py", "no patch that can be read"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(text: str, said: str) -> None:
    assert said in refuse(text, a_py="a\nb\n")


def test_one_refusal_refuses_the_whole_patch() -> None:
    text = "*** Begin Patch\n*** Add File: b.py\n+b\n*** Update File: a.py\n@@\n-no\n+b\n*** End Patch"
    assert refuse(text, a_py="a\n").startswith("a.py: ")


def test_apply_patch_adds_updates_moves_and_deletes() -> None:
    text = """Here it is:
*** Begin Patch
*** Add File: src/n.py
+one
+
+two
*** Update File: a.py
*** Move to: b.py
@@ class B
     def f(self):
-        return 1
+        return 2
*** Delete File: c.py
*** End Patch
"""
    body = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
    after = apply(text, a_py=body, c_py="x\n")
    assert after == {"src/n.py": "one\n\ntwo\n", "b.py": body[: body.rindex("1")] + "2\n"}


def test_an_anchor_may_be_the_first_context_line_too() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@ def g():\n def g():\n-    x\n+    y\n*** End Patch"
    assert apply(text, a_py="def f():\n    x\ndef g():\n    x\n") == {
        "a.py": "def f():\n    x\ndef g():\n    y\n"
    }


def test_the_end_of_the_file_settles_where() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End of File\n*** End Patch"
    assert apply(text, a_py="x\nz\nx\n") == {"a.py": "x\nz\ny\n"}
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n+y\n*** End of File\n*** End Patch"
    assert apply(text, a_py="x") == {"a.py": "x\ny"}


def test_blocks_of_several_files_make_one_patch() -> None:
    text = (
        "a.py\n```py\n<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE\n```\n"
        "b.py\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"
    )
    assert apply(text, a_py="a\n") == {"a.py": "A\n", "b.py": "new\n"}


SEED = re.compile(r"File: `([^`]+)`:\n```[a-z]*\n(.*?)\n```", re.DOTALL)


@for_each(
    "reply",
    [
        "~~~\nFile: `a.py`:\n```python\nx = 1\ny = 2\n```\n\nFile: `src/b.js`:\n```js\nlet a\n```\n~~~",
        "File: `requirements.txt`:\n```text\nflask\n```",
    ],
)
def test_what_the_seeds_expression_reads_is_read_alike(reply: str) -> None:
    assert parse_file_blocks(reply).files == {path: content + "\n" for path, content in SEED.findall(reply)}


def test_file_blocks_survive_what_breaks_the_seeds_expression() -> None:
    reply = (
        "Sure.\nFile: `x.cpp`\n```c++\nint x;\n```\nFile: `empty.py`:\n```py\n```\nFile: `after.py`:\n```Python\nz\n```\n"
        "File: `README.md`:\n````markdown\n# Hi\n```sh\nls\n```\n````\nFile: `doc.md`:\n```markdown\n```sh\nls\n```\nend\n```\n"
    )
    assert parse_file_blocks(reply.replace("\n", "\r\n")).files == {
        "x.cpp": "int x;\n",
        "empty.py": "",
        "after.py": "z\n",
        "README.md": "# Hi\n```sh\nls\n```\n",
        "doc.md": "```sh\nls\n```\nend\n",
    }


def test_what_stands_outside_the_wrapper_is_not_taken_and_told_and_a_path_given_twice_has_its_last_content() -> (
    None
):
    reply = (
        "File: `no.py`:\n```py\nno\n```\n~~~\nFile: `a.py`:\n```py\n1\n```\nFile: `a.py`:\n```py\n2\n```\n~~~\n"
        "And the test:\nFile: `no2.py`:\n```py\nno\n```\n"
    )
    found = parse_file_blocks(reply)
    assert found.files == {"a.py": "2\n"}
    assert found.warnings[0] == "a.py: given twice; the last one is used"
    assert found.outside == ("no.py", "no2.py")
    assert ["no.py" in found.warnings[1], "no2.py" in found.warnings[2]] == [True, True]
    assert "no2.py" in refuse(reply)


FENCED = "File: `{}`:\n{}\n{}```\n{}"


@for_each(
    ("path", "content", "below"),
    [
        ("a.py", "x = 1\n", ""),
        ("a.py", "x = 1\n", "\nRun it:\n```sh\npython a.py\n```\n"),
        ("a.py", "x = 1\n", "\nRun it:\n```\npython a.py\n```\n"),
        ("a.py", "x = 1\n", "Run it:\n```sh\npython a.py\n```\n"),
        ("a.py", 'def f():\n    """\n    ```\n    f()\n    ```\n    """\n', ""),
        ("a.py", '"""Use:\n\n```\nf()\n```\n"""\nx = 1\n', ""),
        ("a.py", '"""Use:\n\n```\nf()\n```\n"""\nx = 1\n', "\nRun it:\n```\npython a.py\n```\n"),
        ("r.md", "# T\n```sh\nls\n```\nend\n", "\nDone.\n"),
        ("r.md", "# T\n~~~\nls\n~~~\nend\n", "\nDone.\n"),
        ("r.md", "# T\n    ```\n    ls\n", "\nDone.\n"),
    ],
)
def test_a_fence_within_a_file_does_not_end_it(path: str, content: str, below: str) -> None:
    for tag in ("```", "```py"):
        found = parse_file_blocks(FENCED.format(path, tag, content, below))
        assert found.files == {path: content}, found
        again = parse_file_blocks(
            FENCED.format(path, tag, content, below) + "\n" + FENCED.format("b.py", tag, "b\n", "")
        )
        assert again.files == {path: content, "b.py": "b\n"}, again


@for_each("content", ["# T\n```\nls\n```\nend\n", "```\na\n```\n```\nb\n```\n"])
def test_where_a_file_ends_is_not_guessed_and_nothing_of_the_reply_is_written(content: str) -> None:
    reply = FENCED.format("a.py", "```py", "a\n", "\n") + FENCED.format("r.md", "```markdown", content, "")
    found = parse_file_blocks(reply)
    assert found.doubtful == "r.md"
    assert found.files == {"a.py": "a\n"}
    assert "longer fence" in refuse(reply)
    longer = reply.replace("```markdown", "````markdown").removesuffix("```\n") + "````\n"
    assert parse_file_blocks(longer).files == {"a.py": "a\n", "r.md": content}


def test_a_reply_that_stands_in_a_fence_as_a_whole_is_read() -> None:
    assert parse_file_blocks("```\n" + FENCED.format("a.py", "```py", "a\n", "") + "```\n").files == {
        "a.py": "a\n"
    }


CONFLICT = "<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> other\n"


@for_each(
    ("search", "replace", "old"),
    [
        (CONFLICT, "a = 1\n", CONFLICT),
        ("b\n" + CONFLICT + "c\n", "b\na = 2\nc\n", "b\n" + CONFLICT + "c\n"),
        ("a = 1\n", CONFLICT, "a = 1\n"),
        ("Title\n=====\n", "New\n=====\n", "Title\n=====\n\ntext\n"),
        ("Title\n==========\n", "New\n===\n", "Title\n==========\n"),
        ("Title\n\\=======\n", "New title\n\\=======\n", "Title\n=======\n"),
    ],
)
def test_a_line_of_markers_within_a_block_does_not_part_it(search: str, replace: str, old: str) -> None:
    wanted = old.replace(search.replace("\\", ""), replace.replace("\\", ""))
    assert apply(BLOCK.format(search, replace), a_py=old) == {"a.py": wanted}


@for_each(
    ("search", "replace"),
    [
        ("Title\n=======\n", "New\n=======\n"),
        ("a = 1\n=======\na = 2\n>>>>>>> other\n", "a = 1\n"),
        ("<<<<<<< HEAD\na = 1\n=======\n", "a = 1\n"),
        (CONFLICT + CONFLICT.replace("=======", "======="), "a = 1\n=======\nb\n"),
    ],
)
def test_a_block_in_which_the_divider_is_in_doubt_is_refused(search: str, replace: str) -> None:
    assert "not certain" in refuse(BLOCK.format(search, replace), a_py=search)


def test_a_path_may_stand_behind_the_language_of_a_blocks_fence() -> None:
    text = "```python a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
    assert apply(text, a_py="a\n") == {"a.py": "b\n"}


def test_added_lines_without_a_place_go_to_the_end() -> None:
    assert apply(UPDATE.format("@@\n+c\n"), a_py="a\nb\n") == {"a.py": "a\nb\nc\n"}
    assert apply(UPDATE.format("+c\n"), a_py="a\nb\n") == {"a.py": "a\nb\nc\n"}
    assert "does not say where" in refuse(UPDATE.format("@@\n+c\n@@\n-a\n+x\n"), a_py="a\nb\n")


def test_where_the_last_line_goes_of_a_file_without_a_final_line_end_it_has_none_after() -> None:
    assert apply(UPDATE.format("@@\n a\n-b\n"), a_py="a\nb") == {"a.py": "a"}
    assert apply(BLOCK.format("a\nb\n", "a\n"), a_py="x\r\na\r\nb") == {"a.py": "x\r\na"}
    diff = DIFF.format("@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n")
    assert apply(diff, a_py="a\nb") == {"a.py": "a\n"}


def test_the_head_of_a_unified_diff_within_an_apply_patch_is_a_line_number() -> None:
    hunk = "@@ -3,2 +3,2 @@ def f():\n x\n-y\n+z\n"
    assert apply(UPDATE.format(hunk), a_py="x\ny\n" * 3) == {"a.py": "x\ny\nx\nz\nx\ny\n"}


def test_blanks_before_a_header_of_an_apply_patch_do_no_harm() -> None:
    patch = UPDATE.format("@@\n-a\n+b\n").replace("*** Update", "  *** Update")
    assert apply(patch, a_py="a\n") == {"a.py": "b\n"}
    after = patch.replace("*** Begin Patch", "*** Begin Patch\n*** Delete File: b.py")
    assert apply(after, a_py="a\n", b_py="x\n") == {"a.py": "b\n"}


def test_an_indented_apply_patch_is_refused() -> None:
    patch = UPDATE.format("@@\n-a\n+b\n")
    assert refuse("".join(f"    {line}\n" for line in patch.splitlines()), a_py="a\n")


def test_a_diff_says_what_git_would_say() -> None:
    patch = Patch(
        files=(
            FileChange(
                path="a", kind="edit", old="1\n2\n3\n4\n5\n6\n7\n8\n9", new="1\n2\n3\n4\nfive\n6\n7\n8\n9"
            ),
            FileChange(path="n", kind="create", new=""),
            FileChange(path="o", kind="rename", old="x\n", new="x\n", to="p"),
        )
    )
    assert render_patch(patch) == (
        "--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "diff --git a/n b/n\nnew file mode 100644\n"
        "diff --git a/o b/p\nrename from o\nrename to p\n"
    )
    intents = parse_patch(render_patch(patch))
    assert not isinstance(intents, Refusal)
    assert list_paths(intents) == ("a", "n", "o", "p")


BLOCK = "a.py\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"
UPDATE = "*** Begin Patch\n*** Update File: a.py\n{}*** End Patch\n"
DIFF = "--- a/a.py\n+++ b/a.py\n{}"


@for_each(
    ("text", "search", "replace"),
    [
        ("OPENAI_API_KEY=abc\n", "API_KEY=abc\n", "API_KEY=x\n"),
        ("max = 1\n", "x = 1\n", "x = 2\n"),
        ("maxwidth = 6\n", "width = 6\n", "width = 7\n"),
        ("one two three four\n", "two three four\n", "x\n"),
        ("one two three four\n", "one two three\n", "x\n"),
        ("f(a, b, c, d)\n", "a,  b, c, d\n", "x\n"),
        ("aaa bbb\nccc\n", "bbb\nccc\n", "x\n"),
    ],
)
def test_a_block_names_whole_lines_and_a_part_of_one_is_refused(text: str, search: str, replace: str) -> None:
    assert "not in the file" in refuse(BLOCK.format(search, replace), a_py=text)
    assert "not in the file" in refuse(
        UPDATE.format(f"@@\n-{search}+x\n".replace("\nccc", "\n-ccc")), a_py=text
    )


def test_a_block_finds_its_line_where_other_lines_hold_it() -> None:
    assert apply(BLOCK.format("x = 1\n", "x = 2\n"), a_py="max = 1\nx = 1\n") == {"a.py": "max = 1\nx = 2\n"}


def test_a_block_of_one_line_without_its_indentation_gives_it_to_every_line() -> None:
    text = BLOCK.format("foo()\n", "bar()\nbaz()\n")
    assert apply(text, a_py="- a\n    foo()\n") == {"a.py": "- a\n    bar()\n    baz()\n"}


def test_a_block_without_indentation_that_could_be_two_lines_is_refused() -> None:
    assert "2 places" in refuse(BLOCK.format("}\n", "};\n"), a_py="f {\n  g {\n  }\n}\n")


@for_each("head", [UPDATE, DIFF])
def test_context_whose_leading_blank_was_forgotten_is_read_as_it_fits_best(head: str) -> None:
    body = "    a();\n    b();\n    c();\n"
    new = "    a();\n    x();\n    b();\n    c();\n"
    mark = "@@\n" if head is UPDATE else "@@ -1,3 +1,4 @@\n"
    for a, b, c in (("", "", ""), (" ", "", " "), ("", " ", ""), (" ", " ", " ")):
        hunk = f"{mark}{a}    a();\n+    x();\n{b}    b();\n{c}    c();\n"
        assert apply(head.format(hunk), a_py=body) == {"a.py": new}


def test_an_anchor_binds() -> None:
    body = "class First:\n    def f(self):\n        return 0\n\nclass Second:\n    x = 1\n"
    hunk = "@@ class {}:\n-        return 0\n+        return 1\n"
    assert "class Second" in refuse(UPDATE.format(hunk.format("Second")), a_py=body)
    assert apply(UPDATE.format(hunk.format("First")), a_py=body) == {"a.py": body.replace("0", "1")}


def test_an_anchor_that_stands_nowhere_is_passed_over_where_the_lines_are_unique() -> None:
    hunk = "@@ def gone():\n-    return 0\n+    return 1\n"
    assert apply(UPDATE.format(hunk), a_py="def f():\n    return 0\n") == {"a.py": "def f():\n    return 1\n"}
    twice = "def f():\n    return 0\ndef g():\n    return 0\n"
    assert "not in the file" in refuse(UPDATE.format(hunk), a_py=twice)


def test_of_anchors_that_stand_twice_the_one_counts_whose_block_has_the_lines() -> None:
    body = "class A:\n    def f(self):\n        return 0\nclass B:\n    def f(self):\n        return 5\n"
    hunk = "@@ def f(self):\n-        return 5\n+        return 6\n"
    assert apply(UPDATE.format(hunk), a_py=body) == {"a.py": body.replace("5", "6")}


def test_lines_below_the_block_of_an_anchor_are_meant_too_while_nothing_else_is_defined() -> None:
    body = "def f():\n    a = 1\n\nx = f()\n    a = 1\n"
    hunk = "@@ def f():\n-    a = 1\n+    a = 2\n"
    assert "2 places" in refuse(UPDATE.format(hunk), a_py=body)
    defined = body.replace("x = f()", "def g():")
    assert apply(UPDATE.format(hunk), a_py=defined) == {"a.py": defined.replace("1", "2", 1)}


def test_lines_put_for_others_beside_one_of_several_blank_lines_are_in_doubt() -> None:
    body = "a\nb\n\n\nc\n"
    assert "blank line" in refuse(UPDATE.format("@@\n a\n-b\n+x\n+y\n \n"), a_py=body)
    whole = UPDATE.format("@@\n a\n-b\n+x\n+y\n \n \n c\n")
    assert apply(whole, a_py=body) == {"a.py": body.replace("b\n", "x\ny\n")}
    assert apply(UPDATE.format("@@\n b\n+x\n \n"), a_py=body) == {"a.py": body.replace("b\n", "b\nx\n")}


def test_a_line_that_a_hunk_leaves_out_between_old_lines_is_kept() -> None:
    body = "".join(f"line {n}\n" for n in range(9))
    hunk = "@@\n line 2\n line 4\n-line 5\n+five\n"
    assert apply(UPDATE.format(hunk), a_py=body) == {"a.py": body.replace("line 5", "five")}
    beside = "@@\n line 2\n+new\n line 4\n"
    assert "not in the file" in refuse(UPDATE.format(beside), a_py=body)


def test_added_lines_with_a_blank_line_only_are_not_placed_beyond_a_left_out_line() -> None:
    """A23.9."""
    body = "def a():\n    return other(1)\n\ndef b():\n    return by(1)\n\ndef c():\n    pass\n"
    above = "@@\n+    return by(1)\n+\n \n-    return by(1)\n+    return tag(1)\n"
    assert "not in the file" in refuse(UPDATE.format(above), a_py=body)
    below = "@@\n-    return other(1)\n \n+    return tag(1)\n"
    spread = body.replace("(1)\n\n", "(1)\n    # more\n\n")
    assert "not in the file" in refuse(UPDATE.format(below), a_py=spread)
    kept = UPDATE.format("@@\n \n     return by(1)\n+    # new\n \n")
    assert apply(kept, a_py=body) == {"a.py": body.replace("by(1)\n", "by(1)\n    # new\n")}


def test_a_line_that_may_be_left_out_beside_the_added_ones_of_another_place_leaves_the_place_in_doubt() -> (
    None
):
    first, second = "class A:\n    # A\n\n    uri: str\n    at: int\n\n\n", "class B:\n    uri: str\n\n"
    hunk = UPDATE.format("@@\n \n     uri: str\n+    new: str\n \n")
    assert "not in the file" in refuse(hunk, a_py=first + second)
    found = apply(hunk, a_py="import c\n\n" + second)
    assert found == {"a.py": "import c\n\nclass B:\n    uri: str\n    new: str\n\n"}


def test_a_blank_line_that_is_marked_as_context_is_looked_for() -> None:
    body = "a = 1\nb = 2\nc = 3\n"
    assert "not in the file" in refuse(UPDATE.format("@@\n \n b = 2\n+x = 1\n c = 3\n"), a_py=body)
    found = apply(UPDATE.format("@@\n\n b = 2\n+x = 1\n c = 3\n"), a_py=body)
    assert found == {"a.py": body.replace("b = 2\n", "b = 2\nx = 1\n")}


def test_brackets_alone_are_not_found_at_another_depth() -> None:
    body = "f {\n      {\n        g\n      }\n    }\n  }\n"
    end = "  return 1;\n}\n"
    hunk = UPDATE.format("@@\n     }\n   }\n-}\n+} // end\n")
    assert apply(hunk, a_py=body + end) == {"a.py": body + end.replace("}", "} // end")}
    assert "not in the file" in refuse(hunk, a_py=body)


def test_added_lines_of_a_hunk_that_lost_its_indentation_have_it_or_are_refused() -> None:
    body = "def f():\n    a = 1\n    b = 2\n\n\ndef g():\n    c = 3\n"
    hunk = "@@\n def f():\n a = 1\n+x = 1\n b = 2\n"
    assert apply(UPDATE.format(hunk), a_py=body) == {"a.py": body.replace("    b", "    x = 1\n    b")}
    doubt = "@@\n a = 1\n b = 2\n+x = 1\n \n \n def g():\n"
    assert "indentation" in refuse(UPDATE.format(doubt), a_py=body)


def test_an_added_line_that_shares_only_signs_with_a_removed_one_does_not_take_its_indentation() -> None:
    body = "def f():\n    pass\n\n\nif ready:\n    main()\n"
    hunk = "@@\n \n \n-if ready:\n-main()\n+added()\n+if ready: # now\n"
    assert "indentation" in refuse(UPDATE.format(hunk), a_py=body)


def test_a_hunk_that_names_blank_lines_only_is_refused() -> None:
    assert "blank lines only" in refuse(UPDATE.format("@@\n+x\n \n"), a_py="a\n\nb\n")


def test_a_hunk_that_begins_with_added_lines_near_the_top_is_in_doubt() -> None:
    assert "top of the file" in refuse(UPDATE.format("@@\n+x\n b\n"), a_py="a\nb\nc\n")
    assert apply(UPDATE.format("@@\n+x\n a\n"), a_py="a\nb\nc\n") == {"a.py": "x\na\nb\nc\n"}


def test_lines_added_by_a_line_number_alone_are_refused() -> None:
    assert "does not say where" in refuse(DIFF.format("@@ -1,0 +2 @@\n+new\n"), a_py="a\nb\n")
