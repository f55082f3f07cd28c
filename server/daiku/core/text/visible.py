"""Text as a person is shown it before they agree to something: what hides or reorders is spelled out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from daiku.core.text.patterns import lazy
from daiku.texts.text import Text

_JOINERS = "\u200c\u200d"
_SHOWS_ITSELF = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Format characters that are signs of their own."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks of which nothing is seen."""
_INVISIBLE = lazy(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\uffff\U000e0000-\U000e0fff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_HIDES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def show_hidden(text: str) -> Text:
    """`text` with control, direction, tag and other invisible characters spelled out, line ends kept. What
    joins letters or pictures of a script that needs it stays."""
    plain = text if text.isascii() and text.isprintable() else "".join(_escapes(text))
    if not isinstance(text, Text):
        return Text(plain)
    args = {
        name: show_hidden(value) if isinstance(value, str) else value for name, value in text.args.items()
    }
    return text if plain is text else Text(plain, text.id, args)


def strip_invisible(text: str) -> str:
    """The text without what nobody sees: zero-width, direction and tag characters, controls."""
    return _INVISIBLE.sub("", text)


def drop_hidden(text: str) -> str:
    """The text without what `show_hidden` spells out."""
    return (
        text
        if text.isascii() and text.isprintable()
        else "".join(each for each in _escapes(text) if len(each) == 1)
    )


def _escapes(text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
        if char in "\n\t" or (char == "\r" and after == "\n"):
            yield char
        elif _is_invisible(char, before, after):
            yield f"\\u{ord(char):04x}"
        else:
            yield char


def _is_invisible(char: str, before: str, after: str) -> bool:
    if char in _JOINERS:
        return not (_is_joiner(before) and _is_joiner(after))
    if _is_variant_selector(char):
        return (
            not before or _is_variant_selector(before) or (before.isascii() and before not in "0123456789#*")
        )
    if (
        "\u2060" <= char <= "\u206f" or "\U000e0000" <= char <= "\U000e0fff"
    ):  # tags, and what is set aside for the like
        return True
    return char in _BLANK or (unicodedata.category(char) in _HIDES and char not in _SHOWS_ITSELF)


def _is_variant_selector(char: str) -> bool:
    """True for characters that choose a variant of the one before."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_joiner(char: str) -> bool:
    return bool(char) and not char.isascii() and unicodedata.category(char)[0] in "LMS" and char not in _BLANK
