"""Secrets that are known by value, found in every encoding that ordinary tools print."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

from daiku.core.guard.token_shapes import MARK
from daiku.core.text.patterns import lazy

MIN_SECRET = 6
"""Characters of the shortest secret: shorter values are words that text has anyway."""
_MIN_PACKED = 10
"""Letters and digits of the shortest secret that is looked for between separators."""
_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())
_NUMBERED = lazy(
    r"\n[ \t]{0,12}(?:[0-9A-Fa-f]{6,16}:?[ \t]|(?:[^\s:]{1,200}:)?[0-9]{1,7}[ \t]{0,4}[:|\t \u2192-])"
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
            form for value in values for form in _forms(value) if len(form) >= MIN_SECRET and form not in MARK
        }
        self._pattern = re.compile(_alternatives(sorted(forms))) if forms else None
        packed = sorted({form for value in values for form in _packed_forms(value)})
        self._packed = re.compile(_alternatives(packed)) if packed else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def redact(self, text: str) -> str:
        """Return `text` with every secret replaced, also where separators, line ends or addresses divide it."""
        if self._pattern is None:
            return text
        text = self._pattern.sub(MARK, text)
        if self._packed is None or len(text) < _MIN_PACKED:
            return text
        text = _redact_packed(self._packed, text, text, whole_lines=False)
        if "\\0" in text or "\\x00" in text or "\\u0000" in text:
            text = _redact_packed(self._packed, text, _NULS.sub(_blank, text), whole_lines=False)
        lines = "\n" + text
        if not _NUMBERED.search(lines):
            return text
        plain = _DRAWN.sub(_blank, _NUMBERED.sub(_blank, lines))
        return _redact_packed(self._packed, lines, plain, whole_lines=True)[1:]


def _blank(found: re.Match[str]) -> str:
    first = "\n" if found[0].startswith("\n") else " "
    return first + " " * (len(found[0]) - 1)


def _redact_packed(pattern: re.Pattern[str], text: str, plain: str, *, whole_lines: bool) -> str:
    """Return `text` without the secrets in `plain`, which has the same places, less its separators."""
    packed = _pack(plain)
    if pattern.search(packed) is None:
        return text
    places = [at for at, char in enumerate(plain) if ord(char) >= 128 or char.isalnum()]
    parts: list[str] = []
    done = 0
    for found in pattern.finditer(packed):
        start, end = places[found.start()], places[found.end() - 1] + 1
        if whole_lines:
            start = text.rfind("\n", 0, start) + 1
            end = at if (at := text.find("\n", end)) >= 0 else len(text)
        if end > done:
            parts += (text[done : max(start, done)], MARK)
            done = end
    return "".join((*parts, text[done:]))


def _packed_forms(secret: str) -> Iterator[str]:
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
            yield _pack(_inner_base64(data, offset))
    yield "".join(f"{byte:03o}" for byte in raw)
    for data in (raw, raw[1:]):  # words of two bytes, the lower one first
        yield "".join(f"{high:02x}{low:02x}" for low, high in zip(data[::2], data[1::2], strict=False))


def _pack(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").translate(None, _SEPARATORS).decode("utf-8", "surrogatepass")


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield secret[::-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    hexed = raw.hex()
    yield hexed
    yield hexed.upper()
    for encoded in (_quoted(secret, quote), _quoted(secret, quote_plus)):
        yield encoded
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), encoded)
    yield "".join(f"%{byte:02X}" for byte in raw)
    yield "".join(f"%{byte:02x}" for byte in raw)
    for text in (raw, raw[::-1]):
        for offset in range(3):
            plain = _inner_base64(text, offset)
            yield plain
            yield plain.replace("+", "-").replace("/", "_")


def _quoted(secret: str, how: Callable[..., str]) -> str:
    return how(secret, safe="", errors="surrogatepass")


def _inner_base64(raw: bytes, offset: int) -> str:
    """The characters of base64 that depend on `raw` alone, when `offset` bytes (mod 3) stand before it."""
    encoded = base64.b64encode(b"\0" * offset + raw).decode()
    return encoded[(0, 2, 3)[offset] : (offset + len(raw)) * 8 // 6]


def _alternatives(words: list[str]) -> str:
    """A regular expression of sorted `words` that shares their beginnings; the longest match first."""
    if len(words) == 1:
        return re.escape(words[0])
    prefix = _common(words[0], words[-1])
    rest = [w[len(prefix) :] for w in words]
    groups: dict[str, list[str]] = {}
    for word in rest:
        if word:
            groups.setdefault(word[0], []).append(word)
    body = "|".join(_alternatives(group) for group in groups.values())
    return re.escape(prefix) + f"(?:{body})" + ("?" if "" in rest else "")


def _common(first: str, last: str) -> str:
    length = 0
    for a, b in zip(first, last, strict=False):
        if a != b:
            break
        length += 1
    return first[:length]
