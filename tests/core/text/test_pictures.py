"""Sizes of pictures are read from their headers; what every service refuses is known before it is sent."""

from __future__ import annotations

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st

from daiku.core.text.pictures import (
    LARGEST_BASE64,
    LONGEST_SIDE,
    MOST_PICTURES,
    picture_problem,
    picture_size,
)
from daiku.domain.messages import Image, ToolMessage, UserMessage
from daiku.llm.parts import NO_IMAGE, within_limits
from tests.cases import for_each


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\xff\xc0" * 30_000
    frame = b"\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + b"\x03"
    return b"\xff\xd8\xff\xe0\0\x04ab" + preview + b"\xff" + b"\xff\xc4\0\x04ab" + frame


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


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
    "gif": gif,
    "webp, lossy": lambda w, h: webp(b"VP8 ", w, h),
    "webp, lossless": lambda w, h: webp(b"VP8L", w, h),
    "webp, extended": lambda w, h: webp(b"VP8X", w, h),
}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@for_each("name", FORMS)
@for_each("size", [(1, 2), (640, 480), (LONGEST_SIDE, 20), (9000, 20), (20, 9000)])
def test_a_size_is_read_and_too_large_sides_are_named(name: str, size: tuple[int, int]) -> None:
    data = FORMS[name](*size)
    assert picture_size(data) == size
    problem = picture_problem(encoded(data))
    assert (f"{size[0]:,} x {size[1]:,} pixels" in problem) == (max(size) > LONGEST_SIDE)


def test_a_large_file_is_refused_and_a_file_at_the_limit_is_not() -> None:
    whole = encoded(png(1, 1) + b"\0" * (LARGEST_BASE64 * 3 // 4 - len(png(1, 1))))
    assert picture_problem(whole) == ""
    assert "bytes" in picture_problem(whole + "AAAA")


@given(
    st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG", b"GIF8", b"RIFF0000WEBPVP8L", b"\xff\xd8\xff"])
)
def test_any_bytes_have_a_size_or_none(data: bytes, begin: bytes) -> None:
    picture_size(begin + data)
    picture_problem(encoded(begin + data))
    picture_problem(data.decode("latin-1"))


def test_only_pictures_within_the_limits_are_sent() -> None:
    bad = Image(media_type="image/png", data=encoded(png(9000, 20)))
    fine = Image(media_type="image/png", data=encoded(png(90, 20)))
    shown = ToolMessage(call_id="c", tool="files/read", ok=True, text="a.png", images=(bad, fine))
    said = UserMessage(text="Look", images=(fine,))
    first, second = within_limits((shown, said))
    assert isinstance(first, ToolMessage)
    assert (first.images, second) == ((fine,), said)
    assert first.text.endswith(NO_IMAGE)
    assert within_limits((said,)) == (said,)


@for_each(("count", "kept"), [(20, 20), (21, 11), (30, 20), (31, 11)])
def test_of_too_many_pictures_the_oldest_are_left_out_in_groups(count: int, kept: int) -> None:
    pictures = [Image(media_type="image/png", data=encoded(png(9, number + 1))) for number in range(count)]
    sent = within_limits(tuple(UserMessage(text="", images=(picture,)) for picture in pictures))
    left = [image for message in sent if isinstance(message, UserMessage) for image in message.images]
    assert left == pictures[-kept:]
    assert len(left) <= MOST_PICTURES
