"""Shared types of the wire contract: ids, tokens, and the empty and the text result."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from daiku.domain.base import Wire

Token: TypeAlias = int | str
Id = Annotated[str, Field(min_length=1, max_length=200)]


class Nothing(Wire):
    """Empty params."""


class TextResult(Wire):
    text: str
