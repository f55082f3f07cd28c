"""Sizes of pictures are read from their headers; what every service refuses is known before it is sent."""

from __future__ import annotations

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st

from daiku.texts.rules.pictures import LARGEST_BASE64, LONGEST_SIDE, accepted_type, is_too_large, picture_size
from tests.cases import for_each


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\xff\xc0" * 30_000
    frame = b"\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + b"\x03"
    return b"\xff\xd8\xff\xe0\0\x04ab" + preview + b"\xff" + b"\xff\xc4\0\x04ab" + frame


def webp(kind: bytes, width: int, height: int) -> bytes:
    match kind:
        case b"VP8 ":
            rest = b"\0" * 10 + struct.pack("<HH", width, height)
        case b"VP8L":
            rest = b"\0" * 4 + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\0" * 5
        case _:
            rest = b"\0" * 8 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBP" + kind + rest


FORMS = {
    "png": png,
    "jpeg": jpeg,
    "webp, lossy": lambda w, h: webp(b"VP8 ", w, h),
    "webp, lossless": lambda w, h: webp(b"VP8L", w, h),
    "webp, extended": lambda w, h: webp(b"VP8X", w, h),
}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@for_each("name", FORMS)
@for_each("size", [(1, 2), (640, 480), (LONGEST_SIDE, 20), (LONGEST_SIDE + 1, 20), (20, 9000)])
def test_a_size_is_read_and_too_large_sides_are_found(name: str, size: tuple[int, int]) -> None:
    data = FORMS[name](*size)
    assert picture_size(data) == size
    assert is_too_large(encoded(data)) == (max(size) > LONGEST_SIDE)
    assert accepted_type(encoded(data)) == (
        "" if max(size) > LONGEST_SIDE else f"image/{name.partition(',')[0]}"
    )


def test_a_large_file_is_too_large_and_a_file_at_the_limit_is_not() -> None:
    whole = encoded(png(1, 1) + b"\0" * (LARGEST_BASE64 * 3 // 4 - len(png(1, 1))))
    assert not is_too_large(whole)
    assert is_too_large(whole + "AAAA")


def test_an_animation_is_not_accepted() -> None:
    data = bytearray(webp(b"VP8X", 30, 20))
    assert accepted_type(encoded(bytes(data))) == "image/webp"
    data[20] |= 0x02
    assert accepted_type(encoded(bytes(data))) == ""


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG", b"RIFF0000WEBPVP8L", b"\xff\xd8\xff"]))
def test_any_bytes_have_a_size_or_none(data: bytes, begin: bytes) -> None:
    picture_size(begin + data)
    accepted_type(encoded(begin + data))
    assert not is_too_large(data.decode("latin-1"))
