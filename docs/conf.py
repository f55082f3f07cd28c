"""Settings of the documentation site. `npm run docs` builds it."""

from __future__ import annotations

from typing import Any

from reference import fill, to_rst
from sphinx.application import Sphinx

from daiku.version import __version__

project = "Daiku"
copyright = "The Daiku authors"  # noqa: A001  # the name that Sphinx reads
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "Daiku"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def _fill(_app: Sphinx, _name: str, source: list[str]) -> None:
    source[0] = fill(source[0])


def _to_rst(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    lines[:] = to_rst("\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _to_rst)
    return {"parallel_read_safe": True}
