"""Secrets in a text: known values in every encoding that tools print, and tokens recognized by their shape."""

from __future__ import annotations

import base64
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from math import log2
from pathlib import Path
from posixpath import commonprefix
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus

from daiku.texts.rules.patterns import WordSearch, lazy

MARK = "[redacted]"
Mask: TypeAlias = Callable[[re.Match[str]], str]
_ESCAPED = (
    r"(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[0-7]{3})|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\\U[0-9A-Fa-f]{8})|(?<=\^[@-_])|(?<==[0-9A-F]{2})"
)
_COLORED = r"(?<=\[[0-9]m)|(?<=\[[0-9]{2}m)|(?<=;[0-9]m)|(?<=;[0-9]{2}m)|(?<=;[0-9]{3}m)|(?<=\[m)|(?<=\[K)|(?<=\[[0-2][KJ])|(?<=\x1b[0-9A-Za-z])"
START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED}|{_COLORED})"
"""Where a token may begin: not after a letter or digit, unless it ends an escape sequence or a color code."""
_RANDOM = r"(?=[A-Za-z0-9]{12})(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])(?=[A-Za-z]{0,40}[0-9])"
_INSIDE = rf"(?:{START}|(?-i:(?=(?:[A-Za-z0-9]{{0,24}}[_./-]){{0,8}}?{_RANDOM})))"
"""Where a token with an unusual prefix may begin: behind a letter too if digits and letters of both cases follow."""
_END = r"(?![A-Za-z0-9])"
"""Where a token of a fixed length may end: not before a letter or digit. An underscore belongs to what follows."""
_NEAR = r"""[ \t\w.-]{0,20}[\s'"\\]{0,4}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,6}"""
"""Characters between the name of a service and its token."""

_SURE = 5
"""Characters of the shortest keyword that ends no other word: its token may begin behind letters too."""
_RARE = 4
"""Minimum characters of a prefix that rarely occurs by chance. Random text after it makes it a token."""
_ZEROS = "aa"
"""Part of a prefix, in lower case, that is frequent in base64: it encodes zero bytes."""
_OF_RUNS = (string.ascii_letters + string.digits + "._~+/=$:%-").encode()
_RUN_BYTES = bytes(ord("x") if byte in _OF_RUNS else 0 for byte in range(256))
_LONG_RUN = b"x" * 14
"""Characters of tokens in a row: no token is shorter."""
LONG = 30
"""Characters of most tokens, at least."""
_DIGIT = lazy(r"[0-9]")
_REACH = 80
"""Characters between the beginning of a service's name and that of its token, at most."""


class TokenRule:
    """A shape of tokens. Every token has one of `keywords` in it, in any case; signs before them say more.

    `^`: the token begins with the keyword. `~`: the keyword stands before the token. `<`: the token may have less than
    LONG characters.
    """

    def __init__(self, keywords: str, entropy: float, pattern: str) -> None:
        signs, *words = keywords.split() if keywords[0] in "^~<" else ("", *keywords.split())
        self.is_anchored = "^" in signs
        self.is_apart = "~" in signs
        self.is_short = "<" in signs
        self.keywords = tuple(words)
        self.entropy = entropy
        self.in_context = "NEAR" in pattern
        pattern = pattern.replace("START", self._choose_start()).replace("INSIDE", _INSIDE)
        self._pattern = pattern.replace("NEAR", _NEAR).replace("END", _END)

    def _choose_start(self) -> str:
        """Return the pattern for where a token may begin: anywhere, before random text, or not after a letter."""
        shortest = min(map(len, self.keywords))
        if shortest >= _SURE:
            return ""
        is_rare = self.is_anchored and shortest >= _RARE and not any(_ZEROS in word for word in self.keywords)
        return _INSIDE if is_rare else START

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.ASCII)

    def redact(self, text: str) -> str:
        """Return `text` with every secret of this shape replaced."""
        lower = text.lower()
        if not self.is_anchored or len(lower) != len(text):
            return self.pattern.sub(self._mask, text)
        places = (place for keyword in self.keywords for place in find_all(lower, keyword))
        return substitute_at(places, self.pattern, self._mask, text)

    def _mask(self, found: re.Match[str]) -> str:
        group = next((each for each in range(1, len(found.groups()) + 1) if found[each]), 0)
        secret = found[group]
        if MARK in secret or (self.in_context and not self._is_random(secret)):
            return found[0]
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + MARK + found[0][end:]

    def _is_random(self, secret: str) -> bool:
        return _DIGIT.search(secret) is not None and (not self.entropy or entropy_of(secret) >= self.entropy)


def substitute_at(places: Iterable[int], pattern: re.Pattern[str], mask: Mask, text: str) -> str:
    """Return `text` with the matches of `pattern` that begin at one of `places` replaced."""
    parts: list[str] = []
    at = 0
    for place in sorted(places):
        if place >= at and (found := pattern.match(text, place)):
            parts += (text[at:place], mask(found))
            at = found.end()
    return "".join((*parts, text[at:]))


def find_all(text: str, word: str) -> Iterator[int]:
    """Yield every place of `word` in `text`."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


@cache
def token_rules() -> tuple[TokenRule, ...]:
    """Return all rules: ours first, as they take more of a token where both know it."""
    rows = (*read_rows("own_token_rules.tsv"), *read_rows("token_rules.tsv"))
    return tuple(TokenRule(keywords, float(entropy), pattern) for _, keywords, entropy, pattern in rows)


def read_rows(table: str) -> list[list[str]]:
    """Return the rows of a table beside this module: id, keywords, entropy, regular expression."""
    lines = Path(__file__).with_name(table).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


class _Index(NamedTuple):
    """Rules by keyword: of short and long tokens, services, other words. `search` finds all of them."""

    search: WordSearch
    short: dict[str, list[int]]
    long: dict[str, list[int]]
    services: dict[str, list[int]]
    words: dict[str, list[int]]


@cache
def _index_rules() -> _Index:
    """Build the index of all rules."""
    keywords = sorted({keyword for rule in token_rules() for keyword in rule.keywords})
    index = _Index(WordSearch(map(str.encode, keywords)), {}, {}, {}, {})
    for place, rule in enumerate(token_rules()):
        of_tokens = index.short if rule.is_short else index.long
        part = index.services if rule.in_context else index.words if rule.is_apart else of_tokens
        for keyword in rule.keywords:
            part.setdefault(keyword, []).append(place)
    return index


def _find_keywords(data: bytes) -> list[str]:
    search = _index_rules().search
    return [search.words[place].decode() for place in search.find(data)]


def rules_for(text: str, *, announced: bool = True) -> list[TokenRule]:
    """Return the rules whose tokens may be in `text`; cheap, and it misses none.

    Without `announced`, rules whose keyword stands apart from the token are left out.
    """
    data = text.encode("utf-8", "surrogatepass")
    keywords = _find_keywords(data)
    if not keywords:
        return []
    index = _index_rules()
    places = {place for keyword in keywords if announced for place in index.words.get(keyword, ())}
    lower = data.lower().decode("latin-1")
    if runs := [(lower[start:end], start) for start, end in _find_long_runs(data)]:
        places |= _look_up(index.short, keywords, " ".join(run for run, _ in runs))
        places |= _look_up(index.long, keywords, " ".join(run for run, _ in runs if len(run) >= LONG))
        # The name of a service stands before its token, which has a digit.
        near = (lower[max(0, start - _REACH) : start] + run for run, start in runs if _DIGIT.search(run))
        places |= _look_up(index.services, keywords, "\n".join(near))
    rules = token_rules()
    return [rules[place] for place in sorted(places)]


def _find_long_runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of every run that is long enough for a token."""
    kinds = data.translate(_RUN_BYTES)
    start = kinds.find(_LONG_RUN)
    while start >= 0:
        end = kinds.find(b"\0", start)
        yield start, end if end >= 0 else len(data)
        start = kinds.find(_LONG_RUN, end) if end >= 0 else -1


def is_service(name: str) -> bool:
    """Return True if `name` names a service whose tokens have no shape of their own."""
    services = _index_rules().services
    return any(keyword in services for keyword in _find_keywords(name.encode("utf-8", "surrogatepass")))


def _look_up(index: dict[str, list[int]], keywords: list[str], text: str) -> set[int]:
    return {place for word in keywords if word in index and word in text for place in index[word]}


def has_long_run(text: str) -> bool:
    """Return True if `text` has as many characters of tokens in a row as the shortest token."""
    return text.encode("utf-8", "surrogatepass").translate(_RUN_BYTES).find(_LONG_RUN) >= 0  # `in` is slower


def redact_tokens(text: str, *, announced: bool = True) -> str:
    """Return `text` with everything that is shaped like a token replaced by a mark. `announced`: as for `rules_for`."""
    for rule in rules_for(text, announced=announced):
        text = rule.redact(text)
    return text


def entropy_of(text: str) -> float:
    """Return the Shannon entropy of `text` in bits per character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values())


MIN_SECRET = 6
"""Characters of the shortest secret; shorter values are ordinary words."""
_MIN_PACKED = 10
"""Letters and digits of the shortest secret that is looked for between separators."""
_PIECE = 64
"""Bytes of the beginning of a secret that the quick search looks for."""
_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())
_NUMBERED = lazy(
    r"\n[ \t]{0,12}+(?:[0-9A-Fa-f]{6,16}+:?[ \t]|(?:[^\s:]{1,200}+:)?[0-9]{1,7}[ \t]{0,4}[:|\t \u2192-])"
)
"""Addresses and line numbers that dumps and listings print."""
_DRAWN = lazy(r"(?<=[0-9A-Fa-f]{2})[ ]{2,60}\S.{0,17}$", re.MULTILINE)
"""The column of characters in a dump."""
_NULS = lazy(r"\\(?:u0000|x00|0(?:00)?)")


class KnownValues:
    """Secrets that are known by value. False if there is none that is long enough."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = [value for secret in secrets if len(value := secret.strip()) >= MIN_SECRET]
        forms = {
            form
            for value in values
            for form in _list_forms(value)
            if len(form) >= MIN_SECRET and form not in MARK
        }
        packed = {form for value in values for form in _list_packed_forms(value)}
        self._pattern = lazy(_build_alternatives(sorted(forms))) if forms else None
        self._packed = lazy(_build_alternatives(sorted(packed))) if packed else None
        self._shortest = min(map(len, forms | packed), default=0)
        self._pieces = WordSearch({_pack_bytes(form)[:_PIECE] for form in forms | packed})

    def __bool__(self) -> bool:
        return self._pattern is not None

    def redact(self, text: str) -> str:
        """Return `text` with every secret replaced, also where separators, line ends or addresses divide it."""
        if self._pattern is None or len(text) < self._shortest:
            return text
        if self._pieces.find(_pack_bytes(text)):
            text = self._pattern.sub(MARK, text)
            text = self._redact_packed(text, text, whole_lines=False)
        if "\\" in text and _NULS.search(text):
            text = self._redact_packed(text, _NULS.sub(_blank, text), whole_lines=False)
        if "\n" not in text or not _NUMBERED.search(lines := "\n" + text):
            return text
        plain = _DRAWN.sub(_blank, _NUMBERED.sub(_blank, lines))
        return self._redact_packed(lines, plain, whole_lines=True)[1:]

    def _redact_packed(self, text: str, plain: str, *, whole_lines: bool) -> str:
        """Return `text` without the secrets in `plain`, which has the same places, less its separators."""
        packed = _pack_bytes(plain)
        if self._packed is None or not self._pieces.find(packed):
            return text
        places = [at for at, char in enumerate(plain) if ord(char) >= 128 or char.isalnum()]
        parts: list[str] = []
        done = 0
        for found in self._packed.finditer(packed.decode("utf-8", "surrogatepass")):
            start, end = places[found.start()], places[found.end() - 1] + 1
            if whole_lines:
                start = text.rfind("\n", 0, start) + 1
                end = at if (at := text.find("\n", end)) >= 0 else len(text)
            if end > done:
                parts += (text[done : max(start, done)], MARK)
                done = end
        return "".join((*parts, text[done:]))


def _blank(found: re.Match[str]) -> str:
    first = "\n" if found[0].startswith("\n") else " "
    return first + " " * (len(found[0]) - 1)


def _list_packed_forms(secret: str) -> Iterator[str]:
    """Yield the letters and digits of `secret` in its encodings: as text, hexadecimal, octal, and base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    letters = _pack(secret)
    if len(letters) >= (_MIN_PACKED if any(map(str.isdigit, letters)) else 16):
        yield letters
        yield letters[::-1]
    if len(raw) < _MIN_PACKED:
        return
    for data in (
        raw,
        secret.encode("utf-16-le", "surrogatepass"),
        secret.encode("utf-16-be", "surrogatepass"),
    ):
        yield data.hex()
        yield data.hex().upper()
        for offset in range(3):
            yield _pack(_encode_inner(data, offset))
    yield "".join(f"{byte:03o}" for byte in raw)
    for data in (raw, raw[1:]):  # words of two bytes, the lower one first
        yield "".join(f"{high:02x}{low:02x}" for low, high in zip(data[::2], data[1::2], strict=False))


def _pack(text: str) -> str:
    return _pack_bytes(text).decode("utf-8", "surrogatepass")


def _pack_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, _SEPARATORS)


def _list_forms(secret: str) -> Iterator[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield secret[::-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    hexed = raw.hex()
    yield hexed
    yield hexed.upper()
    for encoded in (_quote(secret, quote), _quote(secret, quote_plus)):
        yield encoded
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), encoded)
    yield "".join(f"%{byte:02X}" for byte in raw)
    yield "".join(f"%{byte:02x}" for byte in raw)
    for text in (raw, raw[::-1]):
        for offset in range(3):
            plain = _encode_inner(text, offset)
            yield plain
            yield plain.replace("+", "-").replace("/", "_")


def _quote(secret: str, how: Callable[..., str]) -> str:
    return how(secret, safe="", errors="surrogatepass")


def _encode_inner(raw: bytes, offset: int) -> str:
    """Return the characters of base64 that depend on `raw` alone, after `offset` bytes (mod 3)."""
    encoded = base64.b64encode(b"\0" * offset + raw).decode()
    return encoded[(0, 2, 3)[offset] : (offset + len(raw)) * 8 // 6]


def _build_alternatives(words: list[str]) -> str:
    """Build a regular expression of sorted `words` that shares their beginnings, the longest match first."""
    if len(words) == 1:
        return re.escape(words[0])
    prefix = commonprefix((words[0], words[-1]))
    rest = [w[len(prefix) :] for w in words]
    groups: dict[str, list[str]] = {}
    for word in rest:
        if word:
            groups.setdefault(word[0], []).append(word)
    body = "|".join(_build_alternatives(group) for group in groups.values())
    return re.escape(prefix) + f"(?:{body})" + ("?" if "" in rest else "")
