"""HTML as a row of tags and texts, read in time that follows its length whatever is in it.

The standard library's reader takes minutes for a few hundred kilobytes of unclosed comments or quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import TypeAlias

from daiku.dataclass import dataclass

MAX_TAG = 20_000
"""Characters of one tag; a longer one counts as hidden, for nobody writes it to be read."""
_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,60}")
_STOP = re.compile(r"[>\"']")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_BEFORE_VALUE = re.compile(r"=\s*\Z")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"})
"""Elements whose content is text up to their end tag."""


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


def tokens(html: str) -> Iterator[Token]:
    """Yield the tags and texts of `html`, without comments and declarations. If markup or an element
    such as `<script>` is never closed, drop everything from there on and stop."""
    low = html.lower() if len(html.lower()) == len(html) else html
    at = 0
    while at < len(html):
        opens = html.find("<", at)
        if opens < 0:
            yield TextToken(unescape(html[at:]))
            return
        if opens > at:
            yield TextToken(unescape(html[at:opens]))
        nxt = html[opens + 1 : opens + 2]
        if nxt in ("!", "?"):
            at = _after_declaration(html, opens)
        elif nxt == "/":
            at, token = _end_tag(html, opens)
            if token is not None:
                yield token
        elif name := _NAME.match(html, opens + 1):
            close = _close_of(html, name.end())
            if close < 0:
                return
            tag = name[0].lower()
            yield StartTag(tag, _attributes(html[name.end() : close]))
            at = close + 1
            if tag in _RAW:
                end = low.find(f"</{tag}", at)
                if end < 0:
                    return
                yield TextToken(unescape(html[at:end]) if tag in ("title", "textarea") else html[at:end])
                at = end
        else:
            yield TextToken("<")
            at = opens + 1


def _after_declaration(html: str, opens: int) -> int:
    if html.startswith("<!--", opens):
        if html.startswith((">", "->"), opens + 4):
            return html.index(">", opens + 4) + 1
        end, length = html.find("-->", opens + 4), 3
    else:
        end, length = html.find(">", opens), 1
    return len(html) if end < 0 else end + length


def _end_tag(html: str, opens: int) -> tuple[int, EndTag | None]:
    close = html.find(">", opens)
    if close < 0:
        return len(html), None
    name = _NAME.match(html, opens + 2, close)
    return close + 1, EndTag(name[0].lower()) if name else None


def _close_of(html: str, at: int) -> int:
    """Where the tag that is open at `at` ends, quoted values passed over; -1 where it never does."""
    while stop := _STOP.search(html, at):
        if stop[0] == ">":
            return stop.start()
        at = stop.end()
        if _BEFORE_VALUE.search(html, max(0, stop.start() - 10), stop.start()):
            at = html.find(stop[0], at) + 1
            if at == 0:
                return -1
    return -1


def _attributes(text: str) -> Mapping[str, str]:
    if len(text) > MAX_TAG:
        return {"hidden": ""}
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match[2] if match[2] is not None else match[3] if match[3] is not None else match[4] or ""
        found.setdefault(match[1].lower(), unescape(value))
    return found
