"""Forms in which a text is searched, and the similarity of texts by winnowed fingerprints of code and prose."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Literal
from zlib import crc32

from daiku.dataclass import dataclass
from daiku.domain.guardrails import GuardrailAction
from daiku.texts.rules.marks import without_mark_runs
from daiku.texts.rules.omissions import enclosed
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


WARN, BLOCK = 0.28, 0.40
"""Scores from which on a text is warned of, and above which it is blocked (R1.63, R1.64; C1.5)."""
CODE_GRAM, WORD_GRAM, SIGN_GRAM = 14, 4, 8
"""Tokens of a k-gram: of code, of words, of Japanese or Chinese signs."""
WINDOW = 4
"""Of so many neighbouring k-grams one is kept."""
LEAST = 8
"""A text with fewer fingerprints of a kind is too short to be said to be like another."""
LONGEST = 200_000
"""Characters of a text that are looked at."""
CODE_SHARE = 0.055
"""Text is code where this part of its characters are signs that code is full of."""

Kind = Literal["code", "prose"]
_CODE_SIGNS = frozenset("(){}[];=<>_+*/|&%$#@\\:")
_FENCE = lazy(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n(?P<body>.*?)(?:^[ \t]*+\1[ \t]*+$|\Z)", re.MULTILINE | re.DOTALL
)
_COMMENT = lazy(r"""\"{3}|'{3}|/\*|(?:^|(?<=\s))(?:#|//)[^\n]*+""")
"""A comment to the end of its line, or the beginning of a longer one."""
_REST = {
    '"""': lazy(r'(?:[^\\]|\\.)*?"{3}', re.DOTALL),
    "'''": lazy(r"(?:[^\\]|\\.)*?'{3}", re.DOTALL),
    "/*": lazy(r".*?\*/", re.DOTALL),
}
"""The rest of a longer comment, by how it begins."""
_STRINGS = r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|`[^`]*`"
_TOKENS = lazy(_STRINGS + r"|\\[\\\"'`]|[^\W\d]\w*|\d[\w.]*|[^\s\w]")
"""An escaped quote begins no string: else each of many would be looked at to the end of its line."""
_WORDS = lazy(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々〆]|[^\W_]+(?:['’][^\W_]+)?")
_SIGN = lazy(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々〆]")
_KEYWORDS = frozenset(
    ["and", "as", "assert", "async", "await", "break", "case", "catch", "class", "const", "continue", "def",
     "default", "del", "do", "elif", "else", "enum", "except", "export", "extends", "finally", "for", "fn", "from",
     "func", "function", "global", "go", "if", "impl", "import", "in", "interface", "is", "lambda", "let", "match",
     "mod", "new", "nonlocal", "not", "null", "none", "or", "package", "pass", "private", "protected", "public",
     "raise", "return", "self", "static", "struct", "super", "switch", "this", "throw", "throws", "trait", "true",
     "false", "try", "type", "typeof", "undefined", "use", "using", "var", "void", "while", "with", "yield"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of one text, by kind."""

    code: frozenset[int] = frozenset()
    prose: frozenset[int] = frozenset()


def fingerprints(text: str) -> Fingerprints:
    """Return the fingerprints of `text`, those of code and those of prose."""
    code: set[int] = set()
    prose: set[int] = set()
    for kind, part in parts(text[:LONGEST]):
        if kind == "code":
            code.update(_winnowed(_code_grams(part)))
        else:
            prose.update(_winnowed(_prose_grams(part)))
    return Fingerprints(frozenset(code), frozenset(prose))


def similarity(text: Fingerprints, other: Fingerprints) -> float:
    """How much of the shorter one stands in the other, 0 to 1; the greater of code and prose."""
    return max(_shared(text.code, other.code), _shared(text.prose, other.prose))


def similarity_action(score: float, warn: float = WARN, block: float = BLOCK) -> GuardrailAction:
    """Return the action for a score: allow below `warn`, block above `block`, warn between them."""
    score = round(score, 4)
    if score > block:
        return "block"
    return "warn" if score >= warn else "pass"


def _shared(one: frozenset[int], other: frozenset[int]) -> float:
    least = min(len(one), len(other))
    return len(one & other) / least if least >= LEAST else 0.0


def parts(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the parts of `text`: fenced code, and the prose around it."""
    at = 0
    for fence in _FENCE.finditer(text):
        yield from _piece(text[at : fence.start()])
        yield "code", fence["body"]
        at = fence.end()
    yield from _piece(text[at:])


def _piece(text: str) -> Iterator[tuple[Kind, str]]:
    written = [char for char in text if not char.isspace()]
    if not written:
        return
    signs = sum(char in _CODE_SIGNS for char in written)
    yield ("code" if signs / len(written) > CODE_SHARE else "prose"), text


def _code_grams(code: str) -> Iterator[int]:
    """Yield the k-grams of code without comments.

    Names are numbered by first use in each k-gram, so a copy with renamed variables matches; literals count by kind.
    """
    tokens = [_folded(token) for token in _TOKENS.findall(_without_comments(without_hidden(code)))]
    for at in range(len(tokens) - CODE_GRAM + 1):
        names: dict[str, str] = {}
        gram = [
            token if kind else names.setdefault(token, f"n{len(names)}")
            for kind, token in tokens[at : at + CODE_GRAM]
        ]
        yield crc32(" ".join(gram).encode("utf-8", "surrogatepass"))


def _without_comments(code: str) -> str:
    """`code` with a space for each comment; one that has no end is none."""
    kept, at = list[str](), 0
    for begin, end in enclosed(code, _COMMENT, lambda found: found[0], _REST):
        kept.append(code[at : begin.start()])
        at = end.end()
    return " ".join((*kept, code[at:]))


def _folded(token: str) -> tuple[bool, str]:
    """Return the normalized token, and whether it is kept as it is because it is not a name."""
    first = token[0]
    if first.isdigit():
        return True, "0"
    if first in "\"'`" and len(token) > 1:
        return True, '""'
    if first.isalpha() or first == "_":
        return token.lower() in _KEYWORDS, token
    return True, token


def _prose_grams(prose: str) -> Iterator[int]:
    words = [word.lower() for word in _WORDS.findall(without_hidden(prose))]
    signs = sum(_SIGN.match(word) is not None for word in words)
    size = SIGN_GRAM if signs * 2 > len(words) else WORD_GRAM
    for at in range(len(words) - size + 1):
        yield crc32(" ".join(words[at : at + size]).encode("utf-8", "surrogatepass"))


def _winnowed(grams: Iterable[int]) -> Iterator[int]:
    """Yield the smallest hash of each window (the last of equal ones).

    All hashes if there are fewer than a window holds.
    """
    hashes = list(grams)
    yield from _least(hashes) if len(hashes) > WINDOW else hashes


def _least(hashes: Sequence[int]) -> Iterator[int]:
    for at in range(len(hashes) - WINDOW + 1):
        yield min(hashes[at : at + WINDOW])
