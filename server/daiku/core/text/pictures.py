"""Sizes of pictures, read from their headers, and the limits of model services for them."""

from __future__ import annotations

import base64
from typing import NamedTuple

LONGEST_SIDE = 8_000
"""Pixels of one side; model services refuse larger pictures."""
LARGEST_BASE64 = 5 * 1024 * 1024
"""Characters of base64 of one picture."""
MOST_PICTURES = 20
"""Pictures in one request; with more of them services allow only small ones."""
DROPPED_AT_ONCE = 10
"""Older pictures that are left out together, so that the beginning of a request changes rarely."""
PICTURES = {
    ".png": ("image/png", b"\x89PNG"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".webp": ("image/webp", b"RIFF"),
}
"""The media type and the first bytes of a picture by its file's suffix."""
_HEADER = 700_000
"""Characters of base64 in which a header must be: the previews in a photo come before its size."""
_NO_SIZE = frozenset((0xC4, 0xC8, 0xCC))
"""Markers of JPEG between 0xC0 and 0xCF that are not the start of a frame."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class Picture(NamedTuple):
    """A picture as base64, and the reason why it cannot be sent; empty if it can."""

    media_type: str
    data: str
    problem: str


def encode_picture(suffix: str, data: bytes) -> Picture:
    """Encode a file with one of the suffixes of `PICTURES`."""
    media_type, magic = PICTURES[suffix.lower()]
    encoded = base64.b64encode(data).decode()
    wrong = "" if data.startswith(magic) else f"it is not a {media_type.partition('/')[2]} picture"
    return Picture(media_type, encoded, wrong or picture_problem(encoded))


def picture_size(data: bytes) -> Size | None:
    """Return the size of a PNG, GIF, WebP, or JPEG picture; None if its header is not readable."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return Size(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    if data.startswith(b"GIF8") and len(data) >= 10:
        return Size(int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))
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


def picture_problem(base64_data: str) -> str:
    """Return why a model service would refuse the picture, and the cure; empty if nothing is known against it."""
    if len(base64_data) > LARGEST_BASE64:
        most = LARGEST_BASE64 * 3 // 4
        return f"it has more than {most:,} bytes, the limit of model services: save it smaller first"
    head = base64_data[: min(_HEADER, len(base64_data)) // 4 * 4]
    try:
        size = picture_size(base64.b64decode(head))
    except ValueError:
        return "its base64 is not valid"
    if size is not None and max(size) > LONGEST_SIDE:
        return (
            f"it has {size.width:,} x {size.height:,} pixels and model services take at most "
            f"{LONGEST_SIDE:,} a side: scale it down first"
        )
    return ""
