"""Pictures as every model service accepts them: scaled and converted by Pillow, or left out with the reason."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.domain.messages import AssistantMessage, Image, Message
from daiku.domain.tools import ToolImage, ToolResult
from daiku.models.history.parts import key_of, without_part
from daiku.texts.rules.pictures import (
    DROPPED_AT_ONCE,
    JPEG,
    LARGEST_BASE64,
    LONGEST_SIDE,
    MOST_PICTURES,
    PNG,
    accepted_type,
    is_too_large,
)
from daiku.texts.text import NO_TEXT, Text, text

if TYPE_CHECKING:
    from PIL.Image import Image as Bitmap

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
"""The formats that are read; each further decoder is one more that a stranger's file can attack."""
_NAMES = f"{', '.join(FORMATS[:-1])}, or {FORMATS[-1]}"
MOST_PIXELS = 80_000_000
"""Pixels of a picture that is decoded: about 320 MB of memory."""
BUDGETS = (6_600_000, 1_600_000, 400_000)
"""Pixels of a scaled picture, tried until its bytes are within the limit. Services look at no more than the first."""
_QUALITY = 85
_ONE_AT_A_TIME = Lock()
"""Held while a picture is decoded, as decoded pictures are large."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A picture within the limits and what was changed; without data, the problem is why it is left out."""

    media_type: str = ""
    data: str = ""
    change: str = ""
    problem: Text = NO_TEXT

    @property
    def note(self) -> str:
        """Return the note on the picture for the model; empty if the picture was not changed."""
        return f"[A picture is left out: {self.problem}.]" if self.problem else self.change


def fit_picture(data: str) -> Fitted:
    """Return a picture, given as base64, within the limits of all services. Blocks while it is scaled."""
    if accepted := accepted_type(data):
        return Fitted(accepted, data)
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return Fitted(problem=text("picture.base64"))
    with _ONE_AT_A_TIME:
        try:
            return _scale(raw)
        except Exception:  # noqa: BLE001  # decoders of damaged or hostile files raise anything
            return Fitted(problem=text("picture.unreadable", formats=_NAMES))


async def fit_pictures(pictures: Sequence[Image | ToolImage]) -> tuple[Fitted, ...]:
    """Return each picture within the limits; what has to be scaled is scaled in a thread."""
    return tuple(
        [
            Fitted(accepted, each.data)
            if (accepted := accepted_type(each.data))
            else await asyncio.to_thread(fit_picture, each.data)
            for each in pictures
        ]
    )


async def fit_result(result: ToolResult) -> ToolResult:
    """Return the result of a tool with its pictures within the limits, and with notes on those that were not."""
    fitted = await fit_pictures(result.images)
    images = tuple(ToolImage(media_type=each.media_type, data=each.data) for each in fitted if each.data)
    return result.model_copy(update={"images": images, "text": _with_notes(result.text, fitted)})


async def within_limits(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with their pictures within the limits, and without the oldest of too many."""
    fitted = [await _fit_message(each) for each in messages]
    images = [image for each in fitted if not isinstance(each, AssistantMessage) for image in each.images]
    excess = max(0, len(images) - MOST_PICTURES)
    dropped = {key_of(image) for image in images[: -(-excess // DROPPED_AT_ONCE) * DROPPED_AT_ONCE]}
    return tuple(without_part(each, "images", dropped.__contains__) for each in fitted)


async def _fit_message(message: Message) -> Message:
    if isinstance(message, AssistantMessage) or not any(is_too_large(each.data) for each in message.images):
        return message  # what was refused for another reason is left out by a cure
    fitted = await fit_pictures(message.images)
    images = tuple(Image(media_type=each.media_type, data=each.data) for each in fitted if each.data)
    return message.model_copy(update={"images": images, "text": _with_notes(message.text, fitted)})


def _with_notes(told: str, fitted: Sequence[Fitted]) -> str:
    return "\n".join(filter(None, (told, *(each.note for each in fitted))))


def _scale(raw: bytes) -> Fitted:
    import PIL.Image  # when used: it is slow to import
    import PIL.ImageOps  # likewise

    too_many = Fitted(problem=text("picture.pixels", most=f"{MOST_PIXELS:,}"))
    try:
        picture = PIL.Image.open(BytesIO(raw), formats=FORMATS)
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning):
        return too_many
    (width, height), kind = picture.size, picture.format
    if width * height > MOST_PIXELS:
        return too_many
    frames = ", the first frame of an animation" if getattr(picture, "is_animated", False) else ""
    for budget in BUDGETS:
        factor = min(1.0, LONGEST_SIDE / max(width, height), (budget / (width * height)) ** 0.5)
        box = (max(1, int(width * factor)), max(1, int(height * factor)))
        picture.draft("RGB", box)  # a JPEG is decoded smaller
        small = PIL.ImageOps.exif_transpose(_resize(picture, box))
        for media_type, encoded in _encodings(small, lossless=kind != "JPEG" and budget == BUDGETS[0]):
            if len(encoded) <= LARGEST_BASE64:
                size = f"{width:,} x {height:,} pixels, shown as {small.width:,} x {small.height:,}"
                return Fitted(media_type, encoded, f"[{kind} picture of {size}{frames}.]")
    return Fitted(problem=text("picture.bytes"))


def _resize(picture: Bitmap, box: tuple[int, int]) -> Bitmap:
    """Return the picture in another size, in a mode that can be scaled smoothly and written as PNG."""
    if picture.mode.startswith("I;16"):  # `convert` would cut 16 bits off at 255
        picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    return picture.resize(box)


def _encodings(picture: Bitmap, *, lossless: bool) -> Iterator[tuple[str, str]]:
    """Yield the picture as PNG if `lossless`, then as JPEG: each its type and its base64."""
    if lossless:
        yield PNG, _encode(picture, "PNG")
    if picture.has_transparency_data:  # JPEG has none
        import PIL.Image  # when used

        picture = picture.convert("RGBA")
        picture = PIL.Image.alpha_composite(PIL.Image.new("RGBA", picture.size, "white"), picture)
    yield JPEG, _encode(picture.convert("RGB"), "JPEG")


def _encode(picture: Bitmap, kind: str) -> str:
    buffer = BytesIO()
    picture.save(buffer, kind, quality=_QUALITY)
    return base64.b64encode(buffer.getvalue()).decode()
