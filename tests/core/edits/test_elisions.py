"""Lines that stand for code a model left out: known by their form, filled in where that is certain, else refused."""

from __future__ import annotations

from collections.abc import Callable

from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.elisions import fill_text
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import build_patch, parse_patch
from daiku.texts.rules.omissions import omission_kind
from tests.cases import for_each

IN_WORDS = [
    "// ... existing code ...",
    "//...existing code...",
    "# ... rest unchanged",
    "{/* ... existing code ... */}",
    "<!-- ... rest of the page ... -->",
    "-- ... rest of query ...",
    "; ... existing code ...",
    "% ... rest of document ...",
    "# ... (same as before)",
    "// ...other methods remain the same...",
    "// ... validation logic ...",
    "// ... (other routes)",
    "... existing code ...",
    "[... rest of code ...]",
    "// …既存のコード…",
    "# ...（既存のコード）...",
    "// ... 既存のコードはそのまま ...",
]
BY_DOTS = ["...", "…", "# ...", "// …", "/* … */", "/* ... */", "<!-- … -->", "[...]", "(...)", "// ・・・"]
IN_WORDS_ALONE = [
    "# rest of the code unchanged",
    "// Rest of file remains unchanged",
    "// existing code",
    "// code omitted for brevity",
    "# same as before",
    "/* existing styles unchanged */",
    "// unchanged",
    "# (rest of file unchanged)",
    "# 以下省略",
    "// （省略）",
    "（以下略）",
    "// 中略",
    "# 後略",
    "// 以下同様",
    "# 残りは変更なし",
    "# 残りのコードは変更なし",
    "// 既存のコード",
    "# 既存の処理はそのまま",
    "# ここに既存のコード",
    "# 変更なし",
]
NO_ELISION = [
    "...args,",
    "...props",
    "{...props}",
    "# Loading data...",
    "// Wait...",
    "# ...and then we go on",
    'print("...")',
    "# the rest is computed lazily by the caller",
    "# Remaining items",
    "# Existing imports",
    "# Existing fields",
    "# order remains unchanged",
    "# keep the existing session open",
    "// same as above but for b",
    "def f(): ...",
    "x: tuple[int, ...]",
    "    ...,",
    "- ...",
    "# e.g. a, b, ...",
    "# 省略可能な引数",
    "# 既存のコードを読み込む",
    "# 省略した場合はNone",
    "# 残りの秒数",
    "# その他",
]

OLD = """\
import os

VERSION = 1


def first(a):
    b = a + 1
    return b


def second(a):
    c = a * 2
    d = c * 3
    return d


def third(a):
    return a
"""


@for_each("line", IN_WORDS)
def test_a_line_that_says_in_words_and_dots_that_code_is_left_out(line: str) -> None:
    assert omission_kind(line) == omission_kind(f"    {line}  ") == "both"


@for_each("line", BY_DOTS)
def test_dots_alone_say_so_too(line: str) -> None:
    assert omission_kind(line) == omission_kind(f"\t{line}") == "dots"


@for_each("line", IN_WORDS_ALONE)
def test_words_alone_say_so_too(line: str) -> None:
    assert omission_kind(line) == omission_kind(f"    {line}") == "words"


def test_words_between_lines_that_stand_side_by_side_in_the_file_are_a_comment() -> None:
    new = OLD.replace("VERSION = 1\n", "# existing code\nVERSION = 1\n")
    assert fill_text(new, OLD) == new


@for_each("line", NO_ELISION)
def test_spread_ellipsis_and_comments_about_something_else_leave_nothing_out(line: str) -> None:
    assert not omission_kind(line)


@for_each("mark", [*IN_WORDS, *IN_WORDS_ALONE, *BY_DOTS])
def test_between_lines_that_stand_once_the_old_ones_are_put(mark: str) -> None:
    new = f"import os\n\nVERSION = 2\n\n\ndef first(a):\n{mark}\n\ndef third(a):\n    return a + 1\n"
    wanted = OLD.replace("VERSION = 1", "VERSION = 2").replace("return a\n", "return a + 1\n")
    assert fill_text(new, OLD) == wanted
    assert fill_text(new.replace("\n", "\r\n"), OLD.replace("\n", "\r\n")) == wanted.replace("\n", "\r\n")


def test_above_the_first_and_below_the_last_the_old_ones_are_put() -> None:
    new = "# ... existing code ...\n\ndef third(a):\n    return 3\n"
    assert fill_text(new, OLD) == OLD.replace("return a\n", "return 3\n")
    new = "import os\n\nVERSION = 2\n\n\ndef first(a):\n# ... rest unchanged ...\n"
    assert fill_text(new, OLD) == OLD.replace("VERSION = 1", "VERSION = 2")


def test_a_block_is_filled_in_up_to_its_end() -> None:
    body = "function a() {\n  one();\n  two();\n}\n\nfunction b() {\n  three();\n  four();\n  five();\n}\n"
    new = "function a() {\n  one(1);\n}\n\nfunction b() {\n  // ... existing code ...\n  five(5);\n}\n"
    assert isinstance(fill_text(new, body), Refusal), "the line below it was changed"
    new = "function a() {\n  one(1);\n}\n\n// ... existing code ...\n"
    assert fill_text(new, body) == body.replace("  one();\n  two();\n", "  one(1);\n")
    new = "// ... existing code ...\nfunction b() {\n  zero();\n  three();\n  // ... existing code ...\n}\n"
    assert fill_text(new, body) == body.replace("  three", "  zero();\n  three")


@for_each(
    "new",
    [
        "import os\nimport sys\n\n# ... rest of the code unchanged ...\n",
        "VERSION = 2\n# ... existing code ...\n",
        "# ... existing code ...\ndef fourth(a):\n    return 4\n",
        "import os\n# ... existing code ...\n    return b + 1\n",
        "import os\n# ... existing code ...\nVERSION = 1\n",
        "import os\n# ... existing code ...\nimport os\n",
        "def third(a):\n# ... existing code ...\nimport os\n",
        "import os\n\nVERSION = 1  # ... rest unchanged ...\n",
        "import os\n\nVERSION = 1\n\n\ndef first(a):\n    return a\n...\ndef nowhere():\n    pass\n",
    ],
)
def test_where_it_is_not_certain_it_is_refused_and_told_what_is_missing(new: str) -> None:
    said = fill_text(new, OLD)
    assert isinstance(said, Refusal)
    assert "left out" in said.text or "leaves code out" in said.text
    if "nowhere" in new:
        assert "    d = c * 3" in said.text


def test_an_elision_never_takes_out_more_than_it_says() -> None:
    old = "start\n" + "".join(f"line {n}\n" for n in range(100)) + "middle\nend\n"
    assert isinstance(fill_text("start\nmiddle\n# ... rest unchanged ...\n", old), Refusal)
    assert isinstance(fill_text("# ... existing code ...\nline 3\nnew\n", old), Refusal)


@for_each(
    ("old", "new"),
    [
        ("import a\n", "import a\n\n\ndef f() -> int:\n    ...\n"),
        ("class P(Protocol):\n    def f(self) -> int:\n        ...\n", "class P(Protocol):\n    def g(self) -> int:\n        ...\n"),
        ("class A:\n    pass\n", 'class A:\n    """What it is."""\n\n    ...\n'),
        ("a\n...\nb\n", "a\n...\nc\n"),
        ("x\n# ... existing code ...\ny\nz\n", "x\n# ... existing code ...\ny\nw\n"),
        ("void f(\n  int a);\n", "void f(\n  int a,\n  ...\n);\n"),
        ("a: 1\n", "a: 1\n...\n---\nb: 2\n"),
        ("x\n", ">>> for x in y:\n...     z\n...\n"),
        ("const a = {};\n", "const a = {\n  ...b,\n  ...c\n};\n"),
    ],
)  # fmt: skip
def test_a_literal_ellipsis_and_text_that_the_file_has_stay(old: str, new: str) -> None:
    assert fill_text(new, old, path="f.py") == new


def test_a_stub_in_the_place_of_a_body_is_an_elision_unless_it_is_all_that_changes() -> None:
    new = OLD.replace("VERSION = 1", "VERSION = 2").replace("    b = a + 1\n    return b\n", "    ...\n")
    assert fill_text(new, OLD, path="f.py") == OLD.replace("VERSION = 1", "VERSION = 2")
    new = OLD.replace("    b = a + 1\n    return b\n", "    ...\n")
    assert fill_text(new, OLD, path="f.py") == new


def test_dots_alone_are_meant_when_they_come_again_and_words_are_not() -> None:
    new = OLD.replace("VERSION = 1\n", "VERSION = 1\n...\n")
    said = fill_text(new, OLD)
    assert isinstance(said, Refusal)
    assert said.may_insist
    assert fill_text(new, OLD, insisted=True) == new
    for words in ("# ... existing code ...", "# rest of the code unchanged"):
        said = fill_text(f"import os\n{words}\n    return 1\n", OLD, insisted=True)
        assert isinstance(said, Refusal)
        assert not said.may_insist
    new = new.replace("\n...\n", "\n# ... existing code ...\n")
    in_prose = fill_text(new, OLD, path="doc.md")
    assert isinstance(in_prose, Refusal)
    assert in_prose.may_insist


SEARCH = "def second(a):\n    c = a * 2\n    d = c * 3\n    return d\n"
SHORT = "def second(a):\n    # ... existing code ...\n    return d\n"
FILLED = OLD.replace("    return d\n", "    return d\n\n    # end\n")


def edit(search: str, replace: str) -> str | Refusal:
    return apply_edits(OLD, [SearchReplace(search=search, replace=replace)])


def patch(text: str, old: str = OLD) -> str | Refusal:
    intents = parse_patch(text)
    assert not isinstance(intents, Refusal), intents.text
    built = build_patch(intents, {"f.py": old})
    return built if isinstance(built, Refusal) else built.files[0].new or ""


def block(search: str, replace: str) -> str | Refusal:
    return patch(f"f.py\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n")


def apply_patch(*lines: str) -> str | Refusal:
    return patch("*** Begin Patch\n*** Update File: f.py\n" + "\n".join(lines) + "\n*** End Patch\n")


def unified(*lines: str) -> str | Refusal:
    return patch("--- a/f.py\n+++ b/f.py\n" + "\n".join(lines) + "\n")


@for_each("make", [edit, block])
def test_the_replacement_of_a_search_is_filled_in_from_it(make: Callable[[str, str], str | Refusal]) -> None:
    assert make(SEARCH, SHORT.replace("return d", "return d\n\n    # end")) == FILLED
    assert isinstance(make(SEARCH, "def second(a, b):\n    # ... existing code ...\n    return 0\n"), Refusal)
    assert isinstance(make("VERSION = 1\n", "VERSION = 2\n# ... existing code ...\n"), Refusal)


@for_each("make", [edit, block])
def test_what_search_and_replacement_leave_out_alike_is_kept(
    make: Callable[[str, str], str | Refusal],
) -> None:
    new = "def second(a, b):\n    # ... existing code ...\n    return d + b\n"
    wanted = OLD.replace("second(a)", "second(a, b)").replace("return d", "return d + b")
    assert make(SHORT, new) == wanted
    assert (
        make(SHORT.replace("# ... existing code ...", "..."), new.replace("# ... existing code ...", "..."))
        == wanted
    )
    assert isinstance(make(SHORT, "def second(a):\n    return 0\n"), Refusal), "what would go is not said"
    assert isinstance(make("def second(a):\n    # ...\n    return a\n", new), Refusal), (
        "it leads out of the block"
    )


@for_each("make", [apply_patch, unified])
def test_context_that_a_hunk_leaves_out_parts_it(make: Callable[..., str | Refusal]) -> None:
    wanted = OLD.replace("second(a)", "second(a, b)").replace("return d", "return d + b")
    for mark in (" # ... existing code ...", "     # ... rest ...", "...", " ..."):
        hunk = (
            "@@ -10,6 +10,6 @@",
            "-def second(a):",
            "+def second(a, b):",
            mark,
            "-    return d",
            "+    return d + b",
        )
        assert make(*hunk) == wanted
        above = ("@@ -1,6 +1,6 @@", " def second(a):", mark, "-    return d", "+    return d + b")
        assert make(*above) == OLD.replace("return d", "return d + b")
    both = (
        "@@ -10,3 +10,3 @@",
        " def second(a):",
        "-    # ...",
        "+    # ...",
        "-    return d",
        "+    return d + b",
    )
    assert make(*both) == OLD.replace("return d", "return d + b")


@for_each("make", [apply_patch, unified])
def test_an_elision_that_is_added_elsewhere_than_it_is_removed_is_refused(
    make: Callable[..., str | Refusal],
) -> None:
    hunk = (
        "-def second(a):",
        "-    # ...",
        "-    return d",
        "+def second(b):",
        "+    # ...",
        "+    return b",
    )
    assert isinstance(make("@@ -10,3 +10,3 @@", *hunk), Refusal)


@for_each("make", [apply_patch, unified])
def test_context_above_an_elision_must_be_in_the_file(make: Callable[..., str | Refusal]) -> None:
    hunk = ("     e = 5", "     # ...", "-    return d", "+    return d + b")
    assert isinstance(make("@@ -10,3 +10,3 @@", *hunk), Refusal)


@for_each("make", [apply_patch, unified])
def test_added_lines_that_leave_code_out_are_filled_in_from_those_removed_or_refused(
    make: Callable[..., str | Refusal],
) -> None:
    hunk = ["@@ -11,4 +11,5 @@", *(f"-{line}" for line in SEARCH.splitlines()), "+def second(a):"]
    hunk += ["+    # ... existing code ...", "+    return d", "+", "+    # end"]
    assert make(*hunk) == FILLED
    refused = make("@@ -3,1 +3,2 @@", "-VERSION = 1", "+VERSION = 2", "+# ... existing code ...")
    assert isinstance(refused, Refusal)
    assert isinstance(make("@@ -3,1 +3,1 @@", "-# ... existing code ...", "+VERSION = 2"), Refusal)
    stub = make("@@ -3,1 +3,4 @@", " VERSION = 1", "+", "+def f(a):", "+    ...")
    assert stub == OLD.replace("VERSION = 1\n", "VERSION = 1\n\ndef f(a):\n    ...\n")


def test_dots_that_a_hunk_keeps_bring_back_nothing_that_it_takes_out() -> None:
    before = [
        (" ", "class Keeps(Protocol):"),
        (" ", "    def a(self) -> int:"),
        (" ", '        """One."""'),
        ("-", "        ..."),
        ("+", "        ...  # a"),
        (" ", ""),
        (" ", "    def b(self) -> int:"),
        ("-", '        """Two."""'),
        (" ", "        ..."),
    ]
    old, new = ("".join(f"{line}\n" for tag, line in before if tag != other) for other in "+-")
    hunk = "".join(f"{tag}{line}\n" for tag, line in before)
    assert patch(f"--- a/f.py\n+++ b/f.py\n@@ -1,8 +1,7 @@\n{hunk}", old=old) == new


def test_a_whole_file_over_one_that_is_there_is_filled_in_or_refused() -> None:
    new = "import os\n\nVERSION = 2\n\n\ndef first(a):\n# ... existing code ...\n"
    text = f"File: `f.py`:\n```py\n{new}```\n"
    assert patch(text) == OLD.replace("VERSION = 1", "VERSION = 2")
    assert isinstance(patch(text.replace("def first(a):", "def first(b):")), Refusal)
    assert patch(text, old="") == new, "there is nothing to fill it in from"
