"""Images within the limits of all model services: scaled and converted by Pillow, or left out with a reason."""

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
from daiku.models.history.parts import hash_image, remove_part
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
"""Formats to decode. Few, because every decoder is attack surface."""
_NAMES = f"{', '.join(FORMATS[:-1])}, or {FORMATS[-1]}"
MOST_PIXELS = 80_000_000
"""Maximum pixels of an image to decode: about 320 MB of memory."""
BUDGETS = (6_600_000, 1_600_000, 400_000)
"""Maximum pixels of a scaled image, tried in order until its bytes fit. Services use no more than the first."""
_QUALITY = 85
_DECODE_LOCK = Lock()
"""Held while an image is decoded, to bound memory."""


@dataclass(frozen=True, slots=True)
class FittedImage:
    """Image within the limits, with a description of the change; without data, `problem` says why it is left out."""

    media_type: str = ""
    data: str = ""
    change: str = ""
    problem: Text = NO_TEXT

    @property
    def note(self) -> str:
        """Note on the image for the model; empty if the image was not changed."""
        return f"[A picture is left out: {self.problem}.]" if self.problem else self.change


def fit_picture(data: str) -> FittedImage:
    """Return an image, given as base64, within the limits of all services. Blocks while scaling."""
    if accepted := accepted_type(data):
        return FittedImage(accepted, data)
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return FittedImage(problem=text("picture.base64"))
    with _DECODE_LOCK:
        try:
            return _scale_image(raw)
        except Exception:  # noqa: BLE001  # decoders of damaged or hostile files raise anything
            return FittedImage(problem=text("picture.unreadable", formats=_NAMES))


async def fit_pictures(images: Sequence[Image | ToolImage]) -> tuple[FittedImage, ...]:
    """Return each image within the limits. Scaling runs in a thread."""
    return tuple(
        [
            FittedImage(accepted, image.data)
            if (accepted := accepted_type(image.data))
            else await asyncio.to_thread(fit_picture, image.data)
            for image in images
        ]
    )


async def fit_result(result: ToolResult) -> ToolResult:
    """Return a tool result with its images within the limits, and with notes on the changed ones."""
    fitted = await fit_pictures(result.images)
    images = tuple(ToolImage(media_type=image.media_type, data=image.data) for image in fitted if image.data)
    return result.model_copy(update={"images": images, "text": _append_notes(result.text, fitted)})


async def fit_message_pictures(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with their images within the limits, and without the oldest if there are too many."""
    fitted = [await _fit_message(message) for message in messages]
    images = [
        image for message in fitted if not isinstance(message, AssistantMessage) for image in message.images
    ]
    excess = max(0, len(images) - MOST_PICTURES)
    dropped = {hash_image(image) for image in images[: -(-excess // DROPPED_AT_ONCE) * DROPPED_AT_ONCE]}
    return tuple(remove_part(message, "images", dropped.__contains__) for message in fitted)


async def _fit_message(message: Message) -> Message:
    if isinstance(message, AssistantMessage) or not any(is_too_large(image.data) for image in message.images):
        return message  # images refused for other reasons are removed by `Cures`
    fitted = await fit_pictures(message.images)
    images = tuple(Image(media_type=image.media_type, data=image.data) for image in fitted if image.data)
    return message.model_copy(update={"images": images, "text": _append_notes(message.text, fitted)})


def _append_notes(message_text: str, fitted: Sequence[FittedImage]) -> str:
    return "\n".join(filter(None, (message_text, *(image.note for image in fitted))))


def _scale_image(raw: bytes) -> FittedImage:
    import PIL.Image  # when used: it is slow to import
    import PIL.ImageOps  # likewise

    too_many = FittedImage(problem=text("picture.pixels", most=f"{MOST_PIXELS:,}"))
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
        for media_type, encoded in _iterate_encodings(
            small, lossless=kind != "JPEG" and budget == BUDGETS[0]
        ):
            if len(encoded) <= LARGEST_BASE64:
                size = f"{width:,} x {height:,} pixels, shown as {small.width:,} x {small.height:,}"
                return FittedImage(media_type, encoded, f"[{kind} picture of {size}{frames}.]")
    return FittedImage(problem=text("picture.bytes"))


def _resize(picture: Bitmap, box: tuple[int, int]) -> Bitmap:
    """Return the image in another size, in a mode that can be scaled smoothly and written as PNG."""
    if picture.mode.startswith("I;16"):  # `convert` would cut 16 bits off at 255
        picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    return picture.resize(box)


def _iterate_encodings(picture: Bitmap, *, lossless: bool) -> Iterator[tuple[str, str]]:
    """Yield the media type and base64 of the image: as PNG if `lossless`, then as JPEG."""
    if lossless:
        yield PNG, _encode(picture, "PNG")
    if picture.has_transparency_data:  # JPEG has no transparency
        import PIL.Image  # when used

        picture = picture.convert("RGBA")
        picture = PIL.Image.alpha_composite(PIL.Image.new("RGBA", picture.size, "white"), picture)
    yield JPEG, _encode(picture.convert("RGB"), "JPEG")


def _encode(picture: Bitmap, kind: str) -> str:
    buffer = BytesIO()
    picture.save(buffer, kind, quality=_QUALITY)
    return base64.b64encode(buffer.getvalue()).decode()
