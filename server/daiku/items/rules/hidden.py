"""Removal of Markdown that a reader of the page does not see: comments, invisible and direction characters."""

from __future__ import annotations

import re
from typing import NamedTuple

from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.visible import drop_hidden

FEW = 60
"""Maximum characters of a picture's or a link's title that is kept; longer ones can hide instructions."""
_FENCE = lazy(r"(?P<mark>`{3,}|~{3,})(?P<rest>.*)$")
_RAW = lazy(r"<(?:pre|script|style|textarea|\?|![A-Za-z\[])", re.IGNORECASE)
_COMMENT = lazy(r"<!--|<!(?=[A-Za-z\[])|<\?")
_DEFINITION = lazy(r"^ {0,3}\[[^\]\n]+\]:[ \t]*(?:\S+[ \t]+[\"'(].*|#[ \t]*|<>[ \t]*)$")
_IMAGE_END = lazy(r"\][(\[]")
_TITLE = r"(?P<told>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))"
_LINK_TITLE = lazy(r"\]\(\s*(?:(?P<to><[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))+)\s+)?" + _TITLE + r"\s*\)")
_FAR_TITLE = lazy(
    r"^(?P<kept> {0,3}\[[^\]\n]+\]:[ \t]*\n?[ \t]*\S+)[ \t]*\n?[ \t]*" + _TITLE + r"[ \t]*$", re.MULTILINE
)
"""A link definition whose title or address is on the next line."""
_ATTRIBUTE = lazy(r"(?P<name>\b(?:alt|title|aria-label|data-[\w-]+))=(?P<told>\"[^\"]*\"|'[^']*')")
_TAG = lazy(r"<[A-Za-z][^<>]*>")


class VisibleText(NamedTuple):
    """The visible part of a text, and whether something was hidden in it."""

    text: str
    hidden: bool


def strip_hidden(markdown: str) -> VisibleText:
    """Remove what the page does not show. `<details>` is shown, and so is a comment in a certain code block."""
    normalized = markdown.replace("\r\n", "\n").replace("\r", "\n")
    visible = drop_hidden(normalized)
    stripped = _strip_comments(visible)
    return VisibleText(stripped, visible != normalized or stripped != visible)


def _strip_comments(text: str) -> str:
    result: list[str] = []
    prose: list[str] = []
    fence, raw = "", False
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            result.append(line)
            fence = "" if _is_closing_fence(line, fence) else fence
        elif opened is not None and not raw and _is_code(prose, opened):
            result += [_strip_prose("\n".join(prose)), line] if prose else [line]
            prose, fence = [], opened["mark"]
        else:
            prose.append(line)
            raw = raw or _RAW.search(line) is not None
    return "\n".join([*result, _strip_prose("\n".join(prose))] if prose else result)


def _is_code(before: list[str], opened: re.Match[str]) -> bool:
    """Return True if a fence starts code for every Markdown reader: no HTML is open before it."""
    if opened["mark"][0] == "`" and "`" in opened["rest"]:
        return False
    return not any("<" in line for line in before)


def _is_closing_fence(line: str, fence: str) -> bool:
    plain = line.strip()
    indent = len(line) - len(line.lstrip(" "))
    return indent < 4 and len(plain) >= len(fence) and not plain.strip(fence[0]) and bool(plain)


def _strip_prose(text: str) -> str:
    lines = [line for line in _cut_comments(text).split("\n") if _DEFINITION.match(line) is None]
    plain = _LINK_TITLE.sub(
        lambda m: m[0] if len(m["told"]) <= FEW else f"]({m['to'] or ''})", _cut_image_texts("\n".join(lines))
    )
    plain = _FAR_TITLE.sub(r"\g<kept>", plain)
    return _TAG.sub(
        lambda tag: _ATTRIBUTE.sub(lambda m: m[0] if len(m["told"]) <= FEW else f'{m["name"]}=""', tag[0]),
        plain,
    )


def _cut_comments(text: str) -> str:
    parts: list[str] = []
    at = 0
    while (match := _COMMENT.search(text, at)) is not None:
        parts.append(text[at : match.start()])
        closing = "-->" if match[0] == "<!--" else ">"
        end = text.find(closing, match.end())
        if end < 0:  # browsers treat the rest as the comment
            return "".join(parts)
        at = end + len(closing)
    return "".join([*parts, text[at:]])


def _cut_image_texts(text: str) -> str:
    """Remove images' alternative texts longer than FEW: readers of the page do not see them."""
    parts: list[str] = []
    at = 0
    while (start := text.find("![", at)) >= 0 and (end := _IMAGE_END.search(text, start)) is not None:
        parts += [
            text[at : start + 2],
            text[start + 2 : end.start()] if end.start() - start - 2 <= FEW else "",
        ]
        at = end.start()
    return "".join([*parts, text[at:]])
