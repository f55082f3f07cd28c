"""Pictures as tests need them: of any size and format, with or without an animation."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    """Return the file of a picture in one color."""
    buffer = io.BytesIO()
    Image.new(mode, (width, height), options.pop("color", 0)).save(buffer, kind, **options)
    return buffer.getvalue()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data)))


def size_of(data: str) -> tuple[int, int]:
    return decoded(data).size
