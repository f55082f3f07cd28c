"""What every part of the wire contract uses: ids, tokens, the empty and the text answer."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from daiku.domain.base import Wire

Token: TypeAlias = int | str
Id = Annotated[str, Field(min_length=1, max_length=200)]


class Nothing(Wire):
    """No params."""


class TextResult(Wire):
    text: str
