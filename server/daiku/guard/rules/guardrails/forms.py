"""The forms in which a text is searched: as it stands, without hidden characters, look-alike letters made Latin."""

from __future__ import annotations

import unicodedata
from types import MappingProxyType

from daiku.texts.rules.marks import without_mark_runs
from daiku.texts.rules.patterns import lazy

_LATIN = "aceopxyijsABCEHIKMOPTXYZSJN"
_ALIKE = (
    "асеорхуіјѕАВСЕНІКМОРТХУ\N{GREEK CAPITAL LETTER ZETA}ЅЈ\N{GREEK CAPITAL LETTER NU}",  # letters that look alike are what this is about
    "αϲεορχγιϳ\u0455ΑΒϹΕΗΙΚΜΟΡΤΧΥΖ\u0405ͿΝ",  # the same from Greek
)
_PAIRS = "ѵvԁdԛqԝwһhпnոnսuцuкkκkтtτtмmнhвbνvυuωwӏlıiɡgɑałløođdħh"  # as above
_SMALL = "ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz"  # small capitals
_FRAMED = "".join(  # letters in squares and in circles, and those that flags are made of
    chr(start + at) + letter
    for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
    for at, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
)
_ALL_PAIRS = _PAIRS + _SMALL + _FRAMED
_FOLDED = MappingProxyType(
    {ord(theirs): ours for row in _ALIKE for theirs, ours in zip(row, _LATIN, strict=True)}
    | {ord(theirs): ours for theirs, ours in zip(_ALL_PAIRS[::2], _ALL_PAIRS[1::2], strict=True)}
)
"""Letters of other scripts by the Latin letter that they look like."""
_HIDDEN = lazy(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e01ef]+"
)
"""Characters that nobody sees: zero width, soft hyphens, directions, fillers, variation selectors, tags."""
_ACCENTS = lazy("[\u0300-\u036f]+")


def without_hidden(text: str) -> str:
    """`text` in its compatibility form (NFKC), without characters that nobody sees."""
    if text.isascii():
        return text
    shown = without_mark_runs(_HIDDEN.sub("", text))
    return _HIDDEN.sub("", unicodedata.normalize("NFKC", shown))


def searched_forms(text: str) -> tuple[str, ...]:
    """Yield each form of `text` in which patterns are searched, once.

    As it is, without hidden characters, and with look-alike and accented letters replaced by Latin ones.
    """
    if text.isascii():
        return (text,)
    plain = without_hidden(text)
    latin = plain.translate(_FOLDED)
    bare = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", latin)))
    return tuple(dict.fromkeys((text, plain, latin, bare)))
