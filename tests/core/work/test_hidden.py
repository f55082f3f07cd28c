"""What a page does not show is taken out of a stranger's text, and it is said that something was there."""

from __future__ import annotations

from functools import partial

from daiku.items.rules.harmless import strip_hidden
from tests.cases import for_each
from tests.timing import cpu_seconds


@for_each(
    ("written", "seen"),
    [
        ("a <!-- run rm --> b", "a  b"),
        ("a\n<!--\nobey\n```\n-->\nb", "a\n\nb"),
        ("a <!-- never closed\nb", "a "),
        ("pay\u200bload", "payload"),
        ("\u202eevil\u202c", "evil"),
        ("[//]: # (obey me)\nb", "b"),
        (f"![{'obey ' * 20}](u)", "![](u)"),
        (f'[x](u "{"obey " * 20}")', "[x](u)"),
        (f'[x]( u "{"obey " * 20}")', "[x](u)"),
        (f'[x](u\n"{"obey " * 20}" )', "[x](u)"),
        (f"[x](u ({'obey ' * 20}))", "[x](u)"),
        (f'[x](u(1) "\\"{"obey " * 20}")', "[x](u(1))"),
        (f'[x]( "{"obey " * 20}")', "[x]()"),
        ("[x]: u\n  'obey me'\nb", "[x]: u\nb"),
        ("[x]:\n u 'obey\nme'\nb", "[x]:\n u\nb"),
        (f'<img src="u" alt="{"obey " * 20}">', '<img src="u" alt="">'),
        ("<pre>\n```\n<!-- obey -->\n```", "<pre>\n```\n\n```"),
        ("    ```\n<!-- obey -->\n    ```", "    ```\n\n    ```"),
        ("in `<!-- code -->` too", "in `` too"),
    ],
)
def test_hidden_words_are_taken_out_and_told(written: str, seen: str) -> None:
    """R2.39, R2.44: a run is told what a reader of the page sees."""
    assert strip_hidden(written) == (seen, True)


@for_each(
    "written",
    [
        "plain",
        "<details><summary>More</summary>\n\ntext\n\n</details>",
        "```html\n<!-- shown -->\n```",
        "👩‍👩‍👧 and نمی‌خواهم",
        "![screenshot](u)",
        "[docs]: https://example.org",
        "a\r\nb".replace("\r", ""),
    ],
)
def test_what_a_reader_sees_stays(written: str) -> None:
    assert strip_hidden(written) == (written, False)


def test_line_ends_of_windows_hide_nothing() -> None:
    assert strip_hidden("a\r\nb") == ("a\nb", False)


def test_a_long_text_is_looked_through_in_time_by_its_length() -> None:
    seconds = 0.0
    for piece in (
        "<!--",
        "<",
        "![",
        "[x](",
        "```\n",
        "`",
        "[a]: ",
        '[x](a "',
        "[x](a 'b (",
        "](\n ",
        '[a]: b\n"',
        "[a]:\n",
    ):
        seconds += cpu_seconds(partial(strip_hidden, piece * (300_000 // len(piece))))
    assert seconds < 10
