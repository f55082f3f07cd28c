"""`File:` blocks: what is written is read back, empty files included."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from daiku.edits.rules.fileblocks import parse_file_blocks, render_file_blocks

LINE = st.sampled_from(
    [
        "",
        " ",
        "x = 1",
        "```",
        "```py",
        "````",
        "~~~",
        "~~~~",
        "File: `b.py`:",
        "# File: c",
        "---",
        '"""',
        "'''",
    ]
)
CONTENT = (
    st.lists(LINE, max_size=8)
    .map(lambda lines: "".join(f"{line}\n" for line in lines))
    .filter(lambda content: "File:" not in content.rstrip().rpartition("\n")[2])
)
"""A file whose last line is itself a `File:` line is the one that cannot be told from the next block."""
PATH = st.sampled_from(["a.py", "src/b.ts", "__init__.py", "Makefile", "docs/c d.md", "x.tar.gz"])


@given(st.dictionaries(PATH, CONTENT, min_size=1, max_size=5))
@example({"__init__.py": ""})
@example({"a.py": "x = 1\n", "__init__.py": "", "src/b.ts": "\n"})
@example({"Makefile": "~~~\n", "a.py": ""})
def test_blocks_that_are_written_are_read_back(files: dict[str, str]) -> None:
    read = parse_file_blocks(render_file_blocks(files.items()))
    assert (read.files, read.warnings, read.rest.strip()) == (files, (), "")


@given(st.dictionaries(PATH, CONTENT.filter(bool), min_size=1, max_size=3))
def test_a_last_line_without_a_line_feed_gets_one(files: dict[str, str]) -> None:
    cut = {path: content.removesuffix("\n") for path, content in files.items()}
    expected = {
        path: f"{content}\n" if content and content[-1] != "\n" else content for path, content in cut.items()
    }
    assert parse_file_blocks(render_file_blocks(cut.items())).files == expected
