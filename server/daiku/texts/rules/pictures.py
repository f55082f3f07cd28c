"""Limits of model services for pictures, and what a picture's header says of its type and size."""

from __future__ import annotations

import base64
from typing import NamedTuple


class PictureLimits(NamedTuple):
    """Limits of a service for one picture: pixels of a side, characters of base64, and media types."""

    side: int
    base64: int
    types: tuple[str, ...]


PNG, JPEG, GIF, WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
_MIB = 1024 * 1024
LIMITS = {
    "anthropic": PictureLimits(8_000, 5 * _MIB, (PNG, JPEG, GIF, WEBP)),
    "gemini": PictureLimits(16_384, 9 * _MIB, (PNG, JPEG, WEBP)),
    "openai": PictureLimits(16_384, 20 * _MIB, (PNG, JPEG, WEBP)),
}
"""The limits by service, from their documentation. Gemini and OpenAI document no limit of pixels; OpenAI takes
GIF only without animation."""
LONGEST_SIDE = min(each.side for each in LIMITS.values())
"""Pixels of one side: a conversation may go on with another service, so the strictest limit counts."""
LARGEST_BASE64 = min(each.base64 for each in LIMITS.values())
"""Characters of base64 of one picture."""
_TYPES = tuple(kind for kind in (PNG, JPEG, GIF, WEBP) if all(kind in each.types for each in LIMITS.values()))
MOST_PICTURES = 20
"""Pictures in one request; with more of them services allow only small ones."""
DROPPED_AT_ONCE = 10
"""Older pictures that are left out together, so that the beginning of a request changes rarely."""
PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"))
"""Suffixes of files that are shown as pictures."""
_HEADER = 700_000
"""Characters of base64 in which a header must be: the previews in a photo come before its size."""
_NO_SIZE = frozenset((0xC4, 0xC8, 0xCC))
"""Markers of JPEG between 0xC0 and 0xCF that are not the start of a frame."""
_ANIMATED = 0x02
"""The flag of an animation in the header of WebP."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def picture_size(data: bytes) -> Size | None:
    """Return the size of a PNG, WebP, or JPEG picture; None if its header is not readable."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return Size(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp_size(data)
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _webp_size(data: bytes) -> Size | None:
    match data[12:16]:
        case b"VP8 ":
            return Size(
                int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
            )
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            return Size(int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1)
        case _:
            return None


def _jpeg_size(data: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            return Size(
                int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
            )
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def is_too_large(base64_data: str) -> bool:
    """Return True if a service refuses the picture for its bytes, or for the sides that its header states."""
    size = picture_size(_read_header(base64_data))
    return len(base64_data) > LARGEST_BASE64 or (size is not None and max(size) > LONGEST_SIDE)


def accepted_type(base64_data: str) -> str:
    """Return the type of a picture that every service accepts as it is; empty for any other."""
    data = _read_header(base64_data)
    if is_too_large(base64_data) or picture_size(data) is None:
        return ""
    if data.startswith(b"RIFF"):
        found = "" if data[12:16] == b"VP8X" and data[20] & _ANIMATED else WEBP
    else:
        found = PNG if data.startswith(b"\x89PNG") else JPEG
    return found if found in _TYPES else ""


def _read_header(base64_data: str) -> bytes:
    try:
        return base64.b64decode(base64_data[: min(_HEADER, len(base64_data)) // 4 * 4])
    except ValueError:
        return b""
