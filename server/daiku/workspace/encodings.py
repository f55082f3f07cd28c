"""Decoding of files to text, and encoding back to the same bytes."""

from __future__ import annotations

import codecs
import re

from daiku.dataclass import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_GUESSES = ["cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "euc_kr", "cp1252", "cp1251", "latin_1"]
_CYRILLIC = ("cp1251",)
_MIXED = re.compile(r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]")
_ESCAPES = re.compile(rb"\x1b\$[@B]")
_SAMPLE = 100_000
"""Bytes from which an encoding is guessed."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text with its encoding and whether it had a byte order mark."""

    text: str
    encoding: str
    bom: bool = False


def decode(data: bytes) -> Decoded | None:
    """Decode `data`; None for binary data. `encode` returns the same bytes."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            text = _decode_strictly(data[len(mark) :], encoding)
            return Decoded(text, encoding, bom=True) if text is not None else None
    if b"\0" in data:
        return None
    escaped = _decode_strictly(data, "iso2022_jp") if _ESCAPES.search(data) else None
    if escaped is not None and escaped.encode("iso2022_jp", "replace") == data:
        return Decoded(escaped, "iso2022_jp")  # its bytes are ASCII, so it would be UTF-8 as well
    text = _decode_strictly(data, "utf-8")
    if text is not None:
        return Decoded(text, "utf-8")
    guess = _guess_encoding(data)
    text = _decode_strictly(data, guess)
    if text is None or text.encode(guess, "replace") != data:
        guess, text = "latin-1", data.decode("latin-1")
    return Decoded(text, guess)


def encode(text: str, encoding: str, *, bom: bool) -> bytes:
    """Encode `text`. Raises UnicodeEncodeError if the encoding lacks a character."""
    mark = next((mark for mark, name in _BOMS if name == encoding), b"") if bom else b""
    return mark + text.encode(encoding)


def _decode_strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _guess_encoding(data: bytes) -> str:
    # Loaded only for the rare file that is not UTF-8: it is slow to import.
    from charset_normalizer import from_bytes

    cut = data[:_SAMPLE]
    if len(cut) < len(data):
        cut = cut[: cut.rfind(b"\n") + 1] or cut
    best = from_bytes(cut, cp_isolation=_GUESSES).best()
    guess = best.encoding if best is not None else "latin-1"
    if guess in _CYRILLIC and _MIXED.search(cut.decode(guess, "replace")):
        return "cp1252"  # an accented Latin word: no word mixes Latin and Cyrillic
    return guess
