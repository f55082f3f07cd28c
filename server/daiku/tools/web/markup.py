"""An HTML tokenizer in linear time.

The standard library's parser takes minutes for a few hundred kilobytes of unclosed comments or quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import TypeAlias

from daiku.dataclass import dataclass

MAX_TAG = 20_000
"""Characters of one tag. A longer one counts as hidden, because it is not meant to be read."""
_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,60}")
_STOP = re.compile(r"[>\"']")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_BEFORE_VALUE = re.compile(r"=\s*\Z")
_RAW_ELEMENTS = frozenset(
    {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"}
)
"""Elements whose content is raw text up to their end tag."""


@dataclass(frozen=True, slots=True)
class StartTag:
    tag: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndTag:
    tag: str


@dataclass(frozen=True, slots=True)
class TextToken:
    text: str


Token: TypeAlias = StartTag | EndTag | TextToken


def tokenize(html: str) -> Iterator[Token]:
    """Yield the tags and texts of `html`, without comments and declarations.

    If a tag or an element such as `<script>` is never closed, everything from there on is dropped.
    """
    lower = html.lower() if len(html.lower()) == len(html) else html
    position = 0
    while position < len(html):
        tag_start = html.find("<", position)
        if tag_start < 0:
            yield TextToken(unescape(html[position:]))
            return
        if tag_start > position:
            yield TextToken(unescape(html[position:tag_start]))
        next_character = html[tag_start + 1 : tag_start + 2]
        if next_character in ("!", "?"):
            position = _skip_declaration(html, tag_start)
        elif next_character == "/":
            position, token = _parse_end_tag(html, tag_start)
            if token is not None:
                yield token
        elif name := _NAME.match(html, tag_start + 1):
            close = _find_tag_end(html, name.end())
            if close < 0:
                return
            tag = name[0].lower()
            yield StartTag(tag, _parse_attributes(html[name.end() : close]))
            position = close + 1
            if tag in _RAW_ELEMENTS:
                end = lower.find(f"</{tag}", position)
                if end < 0:
                    return
                yield TextToken(
                    unescape(html[position:end]) if tag in ("title", "textarea") else html[position:end]
                )
                position = end
        else:
            yield TextToken("<")
            position = tag_start + 1


def _skip_declaration(html: str, opens: int) -> int:
    if html.startswith("<!--", opens):
        if html.startswith((">", "->"), opens + 4):
            return html.index(">", opens + 4) + 1
        end, length = html.find("-->", opens + 4), 3
    else:
        end, length = html.find(">", opens), 1
    return len(html) if end < 0 else end + length


def _parse_end_tag(html: str, opens: int) -> tuple[int, EndTag | None]:
    close = html.find(">", opens)
    if close < 0:
        return len(html), None
    name = _NAME.match(html, opens + 2, close)
    return close + 1, EndTag(name[0].lower()) if name else None


def _find_tag_end(html: str, position: int) -> int:
    """Return the position of the tag's `>` after quoted values; -1 if it has none."""
    while stop := _STOP.search(html, position):
        if stop[0] == ">":
            return stop.start()
        position = stop.end()
        if _BEFORE_VALUE.search(html, max(0, stop.start() - 10), stop.start()):
            position = html.find(stop[0], position) + 1
            if position == 0:
                return -1
    return -1


def _parse_attributes(text: str) -> Mapping[str, str]:
    if len(text) > MAX_TAG:
        return {"hidden": ""}
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match[2] if match[2] is not None else match[3] if match[3] is not None else match[4] or ""
        attributes.setdefault(match[1].lower(), unescape(value))
    return attributes
