"""Prompts: Jinja2 templates from `prompts/`, rendered in a sandbox from typed variables."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_PACKAGED = Path(__file__).parent / "_prompts"
_REPOSITORY = Path(__file__).parents[2] / "prompts"


def prompts_folder() -> Path:
    """Where the prompts are: inside the installed package, else the repository's own folder."""
    return _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    # 40 ms that the start of a server has no use for: the first run pays for them.
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(prompts_folder()),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are text for a model, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        auto_reload=False,  # they do not change while a server lives: no look at the disk for each run
    )


def render(name: str, variables: BaseModel) -> str:
    """The template `prompts/<name>.j2` filled in; `variables` is frozen, so the same text is made
    once. Raises jinja2.TemplateError (a missing variable is an error, never an empty string)."""
    return _render_cached(name, cast("Hashable", variables))


@lru_cache(maxsize=64)
def _render_cached(name: str, variables: Hashable) -> str:
    return _environment().get_template(f"{name}.j2").render(**dict(cast("BaseModel", variables)))
