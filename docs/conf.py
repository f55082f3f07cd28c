"""Settings of the documentation site. `npm run docs` builds it."""

from __future__ import annotations

import re
from typing import Any

from reference import fill
from sphinx.application import Sphinx

from daiku.version import __version__

project = "Daiku"
copyright = "The Daiku authors"  # noqa: A001  # the name that Sphinx reads
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
html_theme = "furo"
html_title = "Daiku"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def _fill(_app: Sphinx, _name: str, source: list[str]) -> None:
    source[0] = fill(source[0])


_LITERAL = re.compile(r"`+([^`]+)`+")
_IDS = re.compile(r" ?\((?:PROTOCOL \d+|(?:[A-Z]\w*\d*\.\d+[–, ]*)+)\)")
"""Ids of requirements in a docstring, which only the developers know."""


def _to_rst(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Convert a docstring with Markdown literals to reStructuredText, in place."""
    parts = _LITERAL.split(_IDS.sub("", "\n".join(lines)))
    parts[::2] = [re.sub(r"([*|])", r"\\\1", text) for text in parts[::2]]
    parts[1::2] = [f"``{literal}``\\ " for literal in parts[1::2]]
    lines[:] = "".join(parts).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _to_rst)
    return {"parallel_read_safe": True}
