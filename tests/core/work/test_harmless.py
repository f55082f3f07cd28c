"""Words of others in our comments: judged by an independent reader of Markdown."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from daiku.items.rules.harmless import (
    clean_commit_message,
    neutralize,
    neutralize_line,
    to_inline_code,
    to_plain_line,
)
from tests.cases import for_each

PIECES = (
    "@bob", "#12", "o/r!3", "`", "``", "```", "~~~", "\n", "\n\n", " ", "\\", "<!-- daiku:progress -->", "<img src=x>", "![a](http://x/y)",
    "- ", "> ", "    ", "/close", "&#64;bob", "*", "_", "a", "<pre>", "Fixes GH-4", "https://h/o/r/issues/5", "\u200b", "\u202e", "[x](y)", "\\@bob",
)  # fmt: skip
MENTION = re.compile(r"(?<![A-Za-z0-9])@[A-Za-z0-9]|(?<![\w/])#\d|GH-\d|/issues/\d")


def acting(markdown: str) -> list[str]:
    """What of a rendered text would notify somebody, refer to something or be HTML."""
    found: list[str] = []
    for token in MarkdownIt("commonmark").parse(markdown):
        found += [token.content] if token.type == "html_block" else []
        for part in token.children or ():
            if part.type in ("html_inline", "image"):
                found.append(part.content)
            if part.type == "text" and MENTION.search(part.content):
                found.append(part.content)
    return found


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("a\n  /close")
@example("@bobhttps://h/o/r/issues/5")
@example("\\https://h/o/r/issues/5")
@example("_`/close_#12")
def test_nothing_acts_in_the_words_of_others(words: str) -> None:
    """R2.40, R2.45: a comment says something and does nothing."""
    said = neutralize(words)
    assert acting(said) == []
    assert acting(f"- [ ] {neutralize_line(words)}") == []
    assert "<!--" not in said
    assert not re.search(r"^[ \t]*/close(?:\s|$)", said, re.MULTILINE)
    assert not re.search("[\u200b\u202e]", said)


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_stands_behind_the_words_of_others_is_still_text(words: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{neutralize(words)}\n\nTHE END")
    last = [token for token in tokens if token.type == "inline"][-1]
    assert last.content.endswith("THE END")


def test_code_stays_code_as_it_was_written() -> None:
    assert neutralize("Use `Vec<T>` or\n```rust\nvec![1] // @bob\n```") == (
        "Use `Vec<T>` or\n\n```rust\nvec![1] // @bob\n```"
    )
    assert to_inline_code("a`b") == "``a`b``"


@for_each(
    ("title", "shown"),
    [
        ("Fixes #12 for @bob", "Fixes 12 for bob"),
        ("Closes\nhttps://h/o/r/issues/3", "Closes h/o/r/issues/3"),
        ("x" * 400, "x" * 299 + "…"),
        ("mail a@b.c", "mail a@b.c"),
    ],
)
def test_a_title_closes_nothing_and_names_nobody(title: str, shown: str) -> None:
    assert to_plain_line(title) == shown


@for_each(
    ("message", "shown"),
    [
        ("Mend add", "Mend add"),
        ("Mend add [skip ci]\n\nFixes #12, o/r#3 and GH-4, for @bob", "Mend add (skip ci)\n\nFixes 12, o/r3 and GH 4, for bob"),
        ("Mend\r\n\r\n\r\nSkip-Checks: true", "Mend\n\n\n: true"),
        ("***no_ci*** Closes https://h/o/r/issues/3", " Closes h/o/r/issues/3"),
        ("直す\n\n- 足し算", "直す\n\n- 足し算"),
    ],
)  # fmt: skip
def test_a_message_of_a_commit_closes_nothing_and_keeps_no_checks_from_running(
    message: str, shown: str
) -> None:
    assert clean_commit_message(message) == shown


@for_each(
    "words",
    [
        "![a](https://e.example/x)",
        "\\![a](https://e.example/x)",
        "\\\\![a](https://e.example/x)",
        "![a][r]\n\n[r]: https://e.example/x",
        "[![a](https://e.example/x)](https://e.example)",
        "> - ![a](https://e.example/x)",
        "!!![a](https://e.example/x)",
    ],
)
def test_a_picture_is_no_picture_for_any_reader_of_markdown(words: str) -> None:
    assert "![" not in neutralize(words)
    assert "![" not in neutralize_line(words)
