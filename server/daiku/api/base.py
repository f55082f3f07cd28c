"""What every part of the wire contract uses: ids, tokens, the empty and the text answer."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from daiku.domain.base import Wire

PROTOCOL = 1
"""Rises when an old client could no longer speak with a new server."""

Token: TypeAlias = int | str
Id = Annotated[str, Field(min_length=1, max_length=200)]


class Nothing(Wire):
    """No params."""


class TextResult(Wire):
    text: str
