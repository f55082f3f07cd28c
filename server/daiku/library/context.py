"""Context items of a library run: read files and images, and reject unusable items."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from daiku.domain.messages import Image
from daiku.domain.runs import ContextItem
from daiku.models.rules.replies.parse import describe_error
from daiku.workspace.paths import to_file_path

LARGEST_TEXT = 1_000_000
"""Maximum bytes of a text file outside the workspace."""


class Context(NamedTuple):
    """Context items for the model, and the images among the files."""

    items: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()


def read_context(context: object, workspace: Path | None) -> Context:
    """Read items, or mappings that describe them.

    Raises TypeError or ValueError, also for a missing file.
    """
    type_name = type(context).__name__
    if isinstance(context, str | Mapping | ContextItem) or not isinstance(context, Iterable):
        raise TypeError(f"Runner.run: `context` is a list of ContextItems, not {type_name}.")
    try:
        items = tuple(ContextItem.model_validate(item) for item in cast("Iterable[object]", context))
    except ValidationError as error:
        raise ValueError(f"Runner.run: `context`: {describe_error(error)}.") from None
    parts = [_read_item(item, workspace) for item in items]
    return Context(
        tuple(item for part in parts for item in part.items),
        tuple(image for part in parts for image in part.images),
    )


def _read_item(item: ContextItem, workspace: Path | None) -> Context:
    address = item.uri or item.path
    if item.kind != "file" or item.text is not None or not address:
        return Context((item,))
    from daiku.texts.rules.pictures import PICTURES  # when used

    place = _locate(address, workspace)
    if place is None:  # an editor document, or a URL
        return Context((item,))
    if not place.exists():
        raise ValueError(f"Runner.run: `context` names a file that does not exist: {place}.")
    item = item.model_copy(update={"uri": place.as_uri()})
    if place.suffix.lower() in PICTURES and place.is_file():
        from daiku.models.history.pictures import fit_picture  # when used

        fitted = fit_picture(base64.b64encode(_read_bytes(place)).decode())
        if fitted.problem:
            raise ValueError(f"Runner.run: `context`: {place} cannot be sent: {fitted.problem}.")
        return Context((item,), (Image(media_type=fitted.media_type, data=fitted.data),))
    if workspace is not None and place.resolve().is_relative_to(workspace):
        return Context((item,))
    return Context((item.model_copy(update={"text": _read_text(place)}),))


def _locate(address: str, workspace: Path | None) -> Path | None:
    """Return the file of a path or file URI, or None for another URI."""
    scheme = urlsplit(address).scheme
    if scheme == "file":
        return Path(to_file_path(address))
    return None if len(scheme) > 1 else (workspace or Path.cwd()) / address


def _read_text(place: Path) -> str:
    """Return the text of a file that no tool can read. Raises ValueError if it is not text, or too large."""
    from daiku.workspace.encodings import decode  # when used

    if place.is_dir():
        raise ValueError(f"Runner.run: `context` names a folder outside the workspace: {place}.")
    if place.stat().st_size > LARGEST_TEXT:
        raise ValueError(f"Runner.run: `context`: {place} has more than {LARGEST_TEXT:,} bytes.")
    decoded = decode(_read_bytes(place))
    if decoded is None:
        raise ValueError(f"Runner.run: `context`: {place} is neither text nor a picture.")
    return decoded.text


def _read_bytes(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError as error:
        raise ValueError(f"Runner.run: `context`: {place} cannot be read: {error.strerror}.") from None
