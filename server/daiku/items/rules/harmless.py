"""Neutralized Markdown of models and strangers, removal of hidden Markdown, and invisible marks of Daiku's texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.rules.visible import drop_hidden, strip_invisible

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
_HIDDEN_TAG = lazy(r"<[A-Za-z][^<>]*>")


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
    return _HIDDEN_TAG.sub(
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


OURS = "<!-- daiku:"
"""Start of every mark."""
PROGRESS = f"{OURS}progress -->"
"""Start of the progress comment."""
_MARK = lazy(r"<!--(?=\s*daiku:)")


def build_mark(item: str, operation: str) -> str:
    """Return the mark that identifies a comment or a request."""
    return f"{OURS}op {item} {operation} -->"


def remove_marks(text: str) -> str:
    """Return `text` without marks: a model's text must not pass for something that was done."""
    return _MARK.sub("&lt;!--", text.removeprefix(PROGRESS)).strip()


MOST_WORDS = 20_000
"""Maximum characters of one author's text in a comment."""
MOST_LINE = 300
"""Maximum characters of text on one line: a step, a title, a command."""
_OPENS = lazy(r"^[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[ \t]*(?P<kind>[\w+#.-]*).*$")
_ACTING_KINDS = frozenset(
    ["geojson", "math", "mermaid", "stl", "suggestion", "topojson", "plantuml", "c4plantuml", "puml", "vega", "vegalite", "d2", "structurizr", "kroki"]
)  # fmt: skip
"""Fenced blocks that a forge does not show as code, or that a service renders, possibly fetching includes."""
_PIECES = lazy(r"(?P<escaped>\\[^\w\s])|(?P<ticks>`+)|(?P<plain>[^\\`]+|\\)")
_UNESCAPED = frozenset("@#!&/")
_REFERENCE = lazy(
    r"(?:https?://[^\s<>()\[\]]*/(?:issues|pulls?|merge_requests|work_items|discussions|epics)/\w[^\s<>()\[\]]*"
    r"|(?<=_)[#!]\d+"  # behind the end of an emphasis
    r"|(?<![A-Za-z0-9])GH-\d+"
    r"|(?<![\w./-])(?:[\w.-]+(?:/[\w.-]+)*)?[#!]\d+"
    r"|(?<![A-Za-z0-9])@(?=[A-Za-z0-9_.-]))[\w@#!./-]*(?:://[^\s<>()\[\]]*)?",
    re.IGNORECASE,
)
_ENTITY = lazy(r"&(?=#\d|#[xX]|[A-Za-z]\w*;)")
_TAG = lazy(r"<(?=[A-Za-z/!?])")
_IMAGE = lazy(r"!\[")
_ACTION = lazy(r"^([ \t]*)(/[A-Za-z_]+(?=[ \t]|$))")
_NO_CHECKS = lazy(r"\bskip-checks(?=[ \t]*:)|\*\*\*NO_CI\*\*\*", re.IGNORECASE)
_BRACKETS = str.maketrans("[]", "()")
_LINE_SIGN = lazy(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9_])|[#!](?=\d)|https?://")


def neutralize(markdown: str) -> str:
    """Neutralize Markdown.

    Mentions and references become code, HTML and images are shown as source. Code stays code, in new fences
    that always close.
    """
    lines = iter(truncate_middle(_normalize_lines(markdown), MOST_WORDS).splitlines())
    rendered: list[str] = []
    for line in lines:
        opened = _OPENS.match(line)
        if opened is None:
            rendered.append(_escape_quick_action(_neutralize_inline(line)))
        else:
            kind = opened["kind"] if opened["kind"].lower() not in _ACTING_KINDS else ""
            rendered += _render_block(kind, list(_take_until_closed(lines, opened["fence"])))
    return "\n".join(rendered).strip()


def neutralize_line(words: str, limit: int = MOST_LINE) -> str:
    """Neutralize text inside a line of Daiku's, such as a step's name."""
    return _neutralize_inline(_join_line(words, limit))


def to_plain_line(words: str, limit: int = MOST_LINE) -> str:
    """Neutralize text without Markdown: a title, a commit's subject. Active characters are removed."""
    return _LINE_SIGN.sub("", re.sub(r"\bGH-(?=\d)", "GH ", _join_line(words, limit)))


def clean_commit_message(message: str) -> str:
    """Remove mentions, closing references, and marks that skip checks, such as `[skip ci]`."""
    lines = _normalize_lines(message)[:MOST_WORDS].splitlines()
    return "\n".join(
        _NO_CHECKS.sub("", to_plain_line(line, MOST_WORDS)).translate(_BRACKETS) for line in lines
    )


def to_inline_code(words: str, limit: int = MOST_LINE) -> str:
    """Render `words` as inline code."""
    plain = _join_line(words, limit).replace("<!--", "<! --")
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    pad = " " if plain[:1] in ("`", "") or plain[-1:] == "`" else ""
    fence = "`" * (longest + 1)
    return f"{fence}{pad}{plain}{pad}{fence}"


def _normalize_lines(words: str) -> str:
    return strip_invisible(words.replace("\r\n", "\n").replace("\r", "\n"))


def _join_line(words: str, limit: int) -> str:
    plain = " ".join(_normalize_lines(words).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _take_until_closed(lines: Iterator[str], fence: str) -> Iterator[str]:
    closes = re.compile(rf"[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    for line in lines:
        if closes.fullmatch(line):
            return
        yield line


def _render_block(kind: str, content: list[str]) -> list[str]:
    """Render a code block that nothing before or in it can open or close."""
    runs = re.findall(r"`{3,}", "\n".join(content))
    fence = "`" * (max((len(run) for run in runs), default=2) + 1)
    return [
        "",
        f"{fence}{kind}",
        *(_escape_quick_action(line.replace("<!--", "<! --")) for line in content),
        fence,
        "",
    ]


def _escape_quick_action(line: str) -> str:
    """Escape a line that GitLab would run as a quick action (`/close`, `/merge`), also in code."""
    return _ACTION.sub(r"\1\\\2", line)


def _neutralize_inline(line: str) -> str:
    """Neutralize one line outside of code.

    Unclosed backquotes are escaped, since a later line could close them.
    """
    parts: list[str] = []
    pending: list[str] = []
    at = 0
    while (piece := _PIECES.match(line, at)) is not None:
        at = piece.end()
        if piece["ticks"]:
            end = _find_closing(line, at, len(piece["ticks"]))
            if end < 0:
                pending.append("\\`" * len(piece["ticks"]))
                continue
            parts += [
                _neutralize_references("".join(pending)),
                to_inline_code(line[at : end - len(piece["ticks"])], len(line) + 1),
            ]
            pending, at = [], end
        elif piece["escaped"] and piece["escaped"][1] in _UNESCAPED:
            pending.append(piece["escaped"][1])
        else:
            pending.append(piece[0])
    return _join_parts([*parts, _neutralize_references("".join(pending))])


def _join_parts(parts: list[str]) -> str:
    """Join parts. A space keeps adjacent backquotes, or a backslash and a backquote, from combining."""
    line = ""
    for part in parts:
        apart = part.startswith("`") and (line.endswith("`") or _escapes_next(line))
        line += f" {part}" if apart else part
    return line


def _escapes_next(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _find_closing(line: str, start: int, length: int) -> int:
    """Return the end of the run of `length` backquotes that closes a span; -1 if there is none."""
    for run in re.finditer("`+", line[start:]):
        if len(run[0]) == length:
            return start + run.end()
    return -1


def _neutralize_references(text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        parts += [_escape_markup(text[at : match.start()]), to_inline_code(match[0], len(match[0]))]
        at = match.end()
    return _join_parts([*parts, _escape_markup(text[at:])])


def _escape_markup(text: str) -> str:
    """Escape entities, HTML and images, so that they are shown as source."""
    return _IMAGE.sub(r"!\\[", _TAG.sub("&lt;", _ENTITY.sub("&amp;", text)))
