"""Every form of a patch: unified diffs, apply-patch, blocks, whole files; many files at once, all or nothing."""

from __future__ import annotations

import re

import pytest

from daiku.core.diff import patch_diff
from daiku.core.fileblocks import parse_file_blocks
from daiku.core.patch import build_patch, parse_patch, paths_of
from daiku.core.refusal import Refusal
from daiku.domain.patches import FileChange, Patch


def apply(text: str, **files: str | None) -> dict[str, str | None]:
    """The files after the patch; a keyword `a_py` is the file `a.py`."""
    before = {name.replace("_", "."): content for name, content in files.items()}
    intents = parse_patch(text)
    assert not isinstance(intents, Refusal), intents.text
    patch = build_patch(intents, {**dict.fromkeys(paths_of(intents)), **before})
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
    patch = build_patch(intents, {**dict.fromkeys(paths_of(intents)), **before})
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


@pytest.mark.parametrize(
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
        ("*** Begin Patch\n*** Update File: a.py\n@@\n+new\n*** End Patch", "does not say where"),
        ("*** Begin Patch\n*** Move File: a.py\n*** End Patch", "neither"),
        ("a.py\n<<<<<<< SEARCH\na\n=======\nb\n", "cut off"),
        ("a.py\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE", "SEARCH part is empty"),
        ("File: `a.py`:\n```py\nx = 1\n", "never closed"),
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


@pytest.mark.parametrize(
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


def test_text_outside_the_wrapper_is_ignored_and_a_path_given_twice_has_its_last_content() -> None:
    reply = (
        "File: `no.py`:\n```py\nno\n```\n~~~\nFile: `a.py`:\n```py\n1\n```\nFile: `a.py`:\n```py\n2\n```\n~~~\n"
        "File: `no2.py`:\n```py\nno\n```\n"
    )
    found = parse_file_blocks(reply)
    assert found.files == {"a.py": "2\n"}
    assert found.warnings == ("a.py: given twice, the last one counts",)


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
    assert patch_diff(patch) == (
        "--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "diff --git a/n b/n\nnew file mode 100644\n"
        "diff --git a/o b/p\nrename from o\nrename to p\n"
    )
    intents = parse_patch(patch_diff(patch))
    assert not isinstance(intents, Refusal)
    assert paths_of(intents) == ("a", "n", "o", "p")
