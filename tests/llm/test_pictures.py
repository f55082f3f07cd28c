"""Pictures enter a conversation as every service accepts them: scaled, converted, or left out with the reason."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from daiku import Agent, Runner
from daiku.domain.errors import UsageError
from daiku.domain.messages import Image, ToolMessage, UserMessage
from daiku.domain.tools import ToolImage, ToolResult
from daiku.models.history.pictures import fit_message_pictures, fit_picture, fit_result
from daiku.run.request import RunRequest
from daiku.testing import FakeLLM
from daiku.texts.rules.pictures import LARGEST_BASE64, MOST_PICTURES, accepted_type
from tests.cases import for_each
from tests.llm.pictures import decoded, encoded, picture, size_of
from tests.runs.playing import Watch, make_app

WIDE = encoded(picture(9000, 20))
FINE = encoded(picture(90, 20))
ROTATED = Pillow.Exif()
ROTATED[0x0112] = 6  # the camera was held upright
MOVING = {"save_all": True, "append_images": [Pillow.new("RGB", (30, 20), "red")]}
NOISE = Pillow.frombytes("RGB", (1500, 1500), os.urandom(1500 * 1500 * 3))


def noise() -> bytes:
    """A picture of more bytes than the limit."""
    from io import BytesIO

    buffer = BytesIO()
    NOISE.save(buffer, "PNG")
    return buffer.getvalue()


@for_each(
    ("make", "kind", "size", "note"),
    {
        "too wide": (partial(picture, 9000, 20), "PNG", (8000, 17), "9,000 x 20 pixels, shown as 8,000 x 17"),
        "too tall": (partial(picture, 1, 20_000), "PNG", (1, 8000), "1 x 20,000"),
        "transparent": (partial(picture, 9000, 9, mode="RGBA"), "PNG", (8000, 8), "9,000 x 9"),
        "16 bits": (partial(picture, 9000, 9, mode="I;16", color=40_000), "PNG", (8000, 8), "9,000 x 9"),
        "palette": (partial(picture, 9000, 9, mode="P", transparency=0), "PNG", (8000, 8), "9,000 x 9"),
        "photo": (
            partial(picture, 8001, 3000, "JPEG"),
            "JPEG",
            (4195, 1573),
            "JPEG picture of 8,001 x 3,000",
        ),
        "rotated": (
            partial(picture, 9000, 20, "JPEG", exif=ROTATED),
            "JPEG",
            (17, 8000),
            "shown as 17 x 8,000",
        ),
        "many bytes": (noise, "JPEG", (1500, 1500), "shown as 1,500 x 1,500"),
        "GIF": (partial(picture, 30, 20, "GIF"), "PNG", (30, 20), "GIF picture"),
        "BMP": (partial(picture, 30, 20, "BMP"), "PNG", (30, 20), "BMP picture"),
        "print": (partial(picture, 30, 20, "TIFF", "CMYK"), "PNG", (30, 20), "TIFF picture"),
        "moving GIF": (
            partial(picture, 30, 20, "GIF", **MOVING),
            "PNG",
            (30, 20),
            "first frame of an animation",
        ),
        "moving WebP": (
            partial(picture, 30, 20, "WEBP", **MOVING),
            "PNG",
            (30, 20),
            "first frame of an animation",
        ),
    }.values(),
)
def test_a_picture_is_brought_within_the_limits(
    make: partial[bytes], kind: str, size: tuple[int, int], note: str
) -> None:
    """C23.1: scaled, rotated, and in a format that all services read."""
    fitted = fit_picture(encoded(make()))
    assert note in fitted.note
    shown = decoded(fitted.data)
    shown.load()
    assert (shown.format, shown.size) == (kind, size)
    assert fitted.media_type == f"image/{kind.lower()}"
    assert not shown.getexif().get(0x0112)
    assert len(fitted.data) <= LARGEST_BASE64
    assert accepted_type(fitted.data) == fitted.media_type


def test_brightness_of_16_bits_is_kept() -> None:
    fitted = fit_picture(encoded(picture(9000, 9, mode="I;16", color=40_000)))
    assert decoded(fitted.data).getpixel((5, 5)) == 40_000 // 256


@for_each("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_within_the_limits_is_sent_unchanged(kind: str) -> None:
    data = encoded(picture(90, 20, kind))
    fitted = fit_picture(data)
    assert (fitted.data, fitted.media_type, fitted.note) == (data, f"image/{kind.lower()}", "")


@for_each(
    ("data", "why"),
    {
        "no base64": ("%%%", "base64"),
        "empty": ("", "not a complete PNG"),
        "text": (encoded(b"hello"), "not a complete PNG"),
        "drawing": (encoded(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "not a complete PNG"),
        "cut off": (encoded(picture(9000, 200)[:300]), "not a complete PNG"),
        "bomb": (encoded(picture(30_000, 30_000, mode="1")), "80,000,000 pixels"),
        "small bomb": (encoded(picture(12_000, 9_000, mode="1")), "80,000,000 pixels"),
        "at the edge": (encoded(picture(9_001, 9_000, mode="1")), "80,000,000 pixels"),
    }.values(),
)
def test_a_picture_that_cannot_be_read_is_left_out_with_the_reason(data: str, why: str) -> None:
    """C23.1: no exception, and no more memory than the bound."""
    fitted = fit_picture(data)
    assert (fitted.data, fitted.note.startswith("[A picture is left out: ")) == ("", True)
    assert why in fitted.problem


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["PNG", "GIF", "BMP", "TIFF", "WEBP", "JPEG"]), st.data())
def test_a_damaged_picture_is_a_value(kind: str, data: st.DataObject) -> None:
    whole = bytearray(picture(9000, 3, kind))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=8)):
        whole[at] = data.draw(st.integers(0, 255))
    fitted = fit_picture(encoded(bytes(whole[: data.draw(st.integers(0, len(whole)))])))
    assert bool(fitted.data) != bool(fitted.problem)


# -- the doors ----------------------------------------------------------------------------


async def test_the_result_of_any_tool_is_scaled() -> None:
    broken = encoded(b"broken")
    images = tuple(ToolImage(media_type="image/png", data=data) for data in (FINE, WIDE, broken))
    result = await fit_result(ToolResult(ok=True, text="Shots", images=images))
    assert [size_of(image.data) for image in result.images] == [(90, 20), (8000, 17)]
    first, second, third = result.text.split("\n")
    assert (first, "8,000 x 17" in second, "left out" in third) == ("Shots", True, True)


def test_a_picture_of_a_programs_tool_reaches_the_model_scaled() -> None:
    """C23.1: one door for the results of all tools."""

    def shot() -> ToolResult:
        """Take a screenshot."""
        return ToolResult(ok=True, text="A shot", images=(ToolImage(media_type="image/bmp", data=WIDE),))

    llm = FakeLLM([{"tool": "shot", "args": {}}], "Seen.")
    with closing(Runner(model=llm)) as runner:
        done = runner.run_sync(Agent("a", "Look.", tools=[shot]), "Look")
    assert done.status == "completed"
    message = llm.requests[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert [(image.media_type, size_of(image.data)) for image in message.images] == [
        ("image/png", (8000, 17))
    ]


async def test_a_picture_of_the_person_is_recorded_scaled(tmp_path: Path) -> None:
    """C23.1: one door for the requests of all fronts."""
    (tmp_path / "project").mkdir()
    app, watch = make_app(tmp_path, {"text": "Seen."}), Watch()
    await app.runs.run(RunRequest("Look", images=(Image(media_type="image/png", data=WIDE),)), watch)
    (start,) = [chunk.event for chunk in watch.chunks if chunk.type == "run_started"]
    assert [size_of(image.data) for image in start.images] == [(8000, 17)]  # type: ignore[union-attr]
    bad = Image(media_type="image/png", data=encoded(b"broken"))
    with pytest.raises(UsageError, match="Cannot send the image: it is not a complete PNG"):
        await app.runs.run(RunRequest("Look", images=(bad,)), watch)
    await app.aclose()


async def test_an_old_conversation_is_scaled_before_it_is_sent() -> None:
    """C23.1: what an older version recorded is scaled as well."""
    wide, fine = (Image(media_type="image/png", data=data) for data in (WIDE, FINE))
    shown = ToolMessage(call_id="c", tool="files/read", ok=True, text="a.png", images=(wide, fine))
    said = UserMessage(text="Look", images=(fine,))
    first, second = await fit_message_pictures((shown, said))
    assert isinstance(first, ToolMessage)
    assert [size_of(image.data) for image in first.images] == [(8000, 17), (90, 20)]
    assert (first.text.splitlines()[0], second) == ("a.png", said)


@pytest.mark.parametrize(("count", "kept"), [(20, 20), (21, 11), (30, 20), (31, 11)])
async def test_of_too_many_pictures_the_oldest_are_left_out_in_groups(count: int, kept: int) -> None:
    pictures = [Image(media_type="image/png", data=encoded(picture(9, n + 1))) for n in range(count)]
    sent = await fit_message_pictures(tuple(UserMessage(text="", images=(each,)) for each in pictures))
    left = [image for message in sent if isinstance(message, UserMessage) for image in message.images]
    assert left == pictures[-kept:]
    assert len(left) <= MOST_PICTURES
