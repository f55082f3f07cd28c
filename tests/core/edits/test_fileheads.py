"""Whole files are known by the heads that models give them, where those are certain; nothing else becomes a file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.agents.coding.coder import Changes, changes_in
from daiku.core.edits.fileheads import add_file_heads
from daiku.core.replies.parse import Unreadable
from tests.cases import for_each

CODE = "x = 1\ny = 2\n"
HEADS = [
    "### `{}`",
    "## {}",
    "**{}**",
    "**{}:**",
    "**`{}`**",
    "`{}`",
    "`{}`:",
    "1. `{}`",
    "- **{}**",
    "### `{}` (new)",
    "#### **{}**（新規）",
    "ファイル: `{}`",
    "ファイル名：{}",
    "Filename: {}",
    "Path: `{}`",
    "New file: `{}`",
    "**File:** `{}`",
]
INFOS = ["python {}", "python:{}", 'python title="{}"', "py filename={}", "{}", "python {{{}}}"]
PATHS = ["src/app.py", "app.py", "./app.py", "a-b/c_d/e.test.py", ".github/x.py"]


def files(text: str) -> dict[str, str] | Unreadable:
    found = changes_in(text)
    if isinstance(found, Unreadable):
        return found
    assert isinstance(found, Changes)
    return {str(call.args["path"]): str(call.args["content"]) for call in found.calls}


@for_each("path", PATHS)
@for_each("head", HEADS)
@for_each("between", ["\n", "\n\n"])
def test_a_line_that_is_nothing_but_a_path_heads_the_fence_below_it(
    head: str, path: str, between: str
) -> None:
    assert files(f"I write it.\n\n{head.format(path)}{between}```python\n{CODE}```\n") == {path: CODE}


@for_each("path", PATHS)
@for_each("info", INFOS)
def test_a_path_behind_the_fence_is_its_head(info: str, path: str) -> None:
    assert files(f"これです。\n\n```{info.format(path)}\n{CODE}```\n") == {path: CODE}


@for_each(
    ("tag", "comment", "path"),
    [
        ("python", "# src/app.py", "src/app.py"),
        ("ts", "// src/app.ts", "src/app.ts"),
        ("css", "/* a.css */", "a.css"),
        ("html", "<!-- index.html -->", "index.html"),
        ("sql", "-- db/one.sql", "db/one.sql"),
        ("", "# conf/app.toml", "conf/app.toml"),
        ("python", "# ファイル: app.py", "app.py"),
    ],
)
def test_a_comment_that_is_nothing_but_a_path_is_the_head_and_stays(
    tag: str, comment: str, path: str
) -> None:
    content = f"{comment}\n{CODE}"
    assert files(f"```{tag}\n{content}```") == {path: content}


@for_each(
    "text",
    [
        "Run it:\n```sh\n# setup.py\npython x\n```",
        "See app.py:\n```python\nx = 1\n```",
        "In `app.py` the function is:\n```python\nx = 1\n```",
        "### Changes\n```python\nx = 1\n```",
        "**Note**\n```python\nx = 1\n```",
        "```python\n# this is app.py\nx = 1\n```",
        "```python\nx = 1\n```",
        "`app.py`\n```console\n$ ls\n```",
        "`app.py`\n```text\nout\n```",
        "### `app.py`\n\nIt says:\n\n```python\nx = 1\n```",
        "v1.2\n```python\nx = 1\n```",
        "### 1.2\n```python\nx = 1\n```",
        "**docs.md**\n```markdown\n# A\n```sh\nls\n```\n```\n",
        "`app.py`\n```python\nx = 1\n",
    ],
)
def test_what_is_not_certain_is_no_file(text: str) -> None:
    assert isinstance(files(text), Unreadable)


def test_several_files_come_in_their_order() -> None:
    text = f"### `a.py`\n```py\n{CODE}```\n\nand\n\n**b.py**\n\n```py\n{CODE}```\n```py c.py\n{CODE}```\n"
    found = changes_in(text)
    assert isinstance(found, Changes)
    assert found.said == "- `a.py`\n- `b.py`\n- `c.py`"


def test_the_forms_that_were_asked_for_win() -> None:
    text = f"File: `a.py`:\n```py\n{CODE}```\n\n### `b.py`\n```py\n{CODE}```\n"
    assert files(text) == {"a.py": CODE}
    patch = "`a.py`\n```\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n```\n"
    found = changes_in(patch)
    assert isinstance(found, Changes)
    assert [call.tool for call in found.calls] == ["files/patch"]


@given(st.text(st.sampled_from("ab `\n#*.py:/"), max_size=200))
def test_any_text_is_borne_and_no_line_of_content_gets_lost(text: str) -> None:
    kept = [line for line in add_file_heads(text).split("\n") if not line.startswith("File: ")]
    assert len(kept) <= text.count("\n") + 1
