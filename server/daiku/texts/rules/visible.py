"""Characters that hide or reorder text, made visible as escapes before a person or a model reads it."""

from __future__ import annotations

import json
import re
import unicodedata

from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text

_JOINERS = "\u200c\u200d"
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
"""Letters and marks of which nothing is seen."""
_INVISIBLE = lazy(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\uffff\U000e0000-\U000e0fff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
FLAGS = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(sign)) for sign in part) for part in ("gbeng", "gbsct", "gbwls"))
)
"""The flags that are written with tag characters."""
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that hide or reorder text, for a regular expression's character class. The panel uses them as well."""
_HIDDEN = lazy(f"{FLAGS}|[{UNSEEN}\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_HIDING = lazy(f"{FLAGS}|[{UNSEEN}]")
_RAW_IN_JSON = lazy(f"[{UNSEEN}\x7f-\x9f]")


def show_hidden(text: str) -> Text:
    """Return `text` with control, direction, tag and other invisible characters as escapes, line ends kept.

    Characters that join letters or emoji of a script that needs them stay.
    """
    return _escape_matches(text, _HIDDEN)


def show_invisible(text: str) -> str:
    """Return `text` with the characters that hide or reorder text as escapes; controls stay."""
    return text if text.isascii() else _escape_matches(text, _HIDING)


def escape_invisible_json(line: str) -> str:
    """Return JSON with controls and characters that hide or reorder text as JSON escapes: its value is the same."""
    return line if line.isascii() else _RAW_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], line)


def restore_invisible(written: str, real: str) -> str:
    """Return `written` with the escapes of `show_invisible` as the characters that they stand for in `real`.

    An escape that `real` itself contains stays.
    """
    if real.isascii() or "\\u" not in written:
        return written
    for sign in {found[0] for found in _HIDING.finditer(real) if len(found[0]) == 1}:
        if (escape := _escape(sign)) not in real:
            written = written.replace(escape, sign)
    return written


def _escape_matches(text: str, pattern: re.Pattern[str]) -> Text:
    plain = pattern.sub(_spell_out, text)
    if not isinstance(text, Text):
        return Text(plain)
    args = {
        name: _escape_matches(value, pattern) if isinstance(value, str) else value
        for name, value in text.args.items()
    }
    return text if plain == text else Text(plain, text.id, args)


def strip_invisible(text: str) -> str:
    """Return the text without what nobody sees: zero-width, direction and tag characters, controls."""
    return _INVISIBLE.sub("", text)


def drop_hidden(text: str) -> str:
    """Return the text without the characters that `show_hidden` spells out."""
    return _HIDDEN.sub(lambda found: "" if _spell_out(found) != found[0] else found[0], text)


def _spell_out(found: re.Match[str]) -> str:
    sign, text, end = found[0], found.string, found.end()
    before, after = text[max(0, found.start() - 1) : found.start()], text[end : end + 1]
    kept = len(sign) > 1 or (sign == "\r" and after == "\n") or not _is_invisible(sign, before, after)
    return sign if kept else _escape(sign)


def _escape(sign: str) -> str:
    return f"\\u{ord(sign):04x}"


def _is_invisible(char: str, before: str, after: str) -> bool:
    if char in _JOINERS:
        return not (_is_joiner(before) and _is_joiner(after))
    if _is_variant_selector(char):
        return not _takes_variant(before, char)
    return True


def _takes_variant(before: str, selector: str) -> bool:
    """Return True if a variant of this kind exists: of emoji, of ideographs, of signs of mathematics."""
    if not before or _is_variant_selector(before):
        return False
    if selector in "\ufe0e\ufe0f":  # as text, as emoji
        return before in "0123456789#*\u2139" or (
            not before.isascii() and unicodedata.category(before)[0] in "SP"
        )
    if before.isascii():
        return False
    ideograph = unicodedata.name(before, "").startswith("CJK")
    return ideograph or (selector == "\ufe00" and unicodedata.category(before) == "Sm")


def _is_variant_selector(char: str) -> bool:
    """Return True for characters that choose a variant of the one before."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_joiner(char: str) -> bool:
    return bool(char) and not char.isascii() and unicodedata.category(char)[0] in "LMS" and char not in BLANK
