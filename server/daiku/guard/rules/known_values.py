"""Secrets that are known by value, found in every encoding that ordinary tools print."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from posixpath import commonprefix
from urllib.parse import quote, quote_plus

from daiku.guard.rules.token_shapes import MARK
from daiku.texts.rules.patterns import WordSearch, lazy

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
