"""The headings of a document, by its format; and which of them a new text lost (R1.60)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from daiku.domain.work.documents import DocumentFormat
from daiku.texts.rules.enclosed import enclosed
from daiku.texts.rules.patterns import lazy

_SUFFIXES: Mapping[str, DocumentFormat] = MappingProxyType(
    {
        **dict.fromkeys((".md", ".mdx", ".markdown", ".mkd", ".qmd", ".rmd"), "markdown"),
        **dict.fromkeys((".rst", ".rest"), "rst"),
        **dict.fromkeys((".adoc", ".asciidoc", ".asc"), "asciidoc"),
        **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
        **dict.fromkeys((".tex", ".latex"), "latex"),
    }
)


def format_of(path: str) -> DocumentFormat:
    """The format of a document by the end of its name; `plain` where it tells none."""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "plain")


def is_prose(path: str) -> bool:
    """Whether a file holds prose by its name: what the drafting agents work on."""
    return format_of(path) != "plain" or PurePosixPath(path).suffix.lower() in (".txt", ".text")


class Heading(NamedTuple):
    """A heading: `mark` is what shows its level, `start` and `end` are its lines in the text (code points)."""

    mark: str
    title: str
    start: int
    end: int

    def shown(self) -> str:
        """Return the heading as it is named to people and models."""
        return f"{self.mark} {self.title}".strip() if self.mark.startswith(("#", "=")) else self.title


class Line(NamedTuple):
    """A line without its end, where it stands, and whether it is code, a comment or front matter."""

    text: str
    start: int
    end: int
    closed: bool


def headings(text: str, form: DocumentFormat) -> tuple[Heading, ...]:
    """The headings of a document in their order; a `#` line within code is none."""
    return tuple(_READERS[form](text))


def lost_headings(old: str, new: str, form: DocumentFormat) -> tuple[Heading, ...]:
    """The headings of `old` that do not stand in `new` as they were and in their order. New ones may stand between."""
    there: dict[tuple[str, str], list[int]] = {}
    for place, heading in enumerate(headings(new, form)):
        there.setdefault((heading.mark, " ".join(heading.title.split())), []).append(place)
    lost: list[Heading] = []
    at = 0
    for heading in headings(old, form):
        places = there.get((heading.mark, " ".join(heading.title.split())), [])
        next_one = bisect_left(places, at)
        if next_one < len(places):
            at = places[next_one] + 1
        else:
            lost.append(heading)
    return tuple(lost)


def front_matter_end(text: str) -> int:
    """Where the front matter of a document ends (its last line included); 0 where there is none."""
    found = _FRONT.match(text)
    return found.end() if found is not None else 0


_FRONT = lazy(
    r"\A(?P<mark>---|\+\+\+)[ \t]*\r?\n(?![ \t]*\r?\n)(?:.*\r?\n){0,200}?(?P=mark)[ \t]*(?:\r?\n|\Z)"
)
_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?)*(?:[-*+][ \t]+)?(`{3,}|~{3,})(.*)$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(
    r"^(?:\s*$| {0,3}(?:#{1,6}(?:\s|$)|>|[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|\|)|\t| {4})"
)


def lines_of(text: str, form: DocumentFormat) -> list[Line]:
    """The lines of a document; those within code, comments and front matter are `closed`."""
    found: list[Line] = []
    front = front_matter_end(text) if form in ("markdown", "html", "plain", "asciidoc") else 0
    closes: Callable[[str], bool] | None = None
    at = 0
    for raw in text.split("\n"):
        end = at + len(raw)
        line = raw.removesuffix("\r")
        if at < front:
            closed = True
        elif closes is not None:
            closed = True
            closes = None if closes(line) else closes
        else:
            closes = _opens(line, form)
            closed = closes is not None
        found.append(Line(line, at, min(end + 1, len(text)), closed))
        at = end + 1
    return found


def _opens(line: str, form: DocumentFormat) -> Callable[[str], bool] | None:
    """What closes the code or comment that begins with this line; None where none begins."""
    if form == "asciidoc":
        mark = line.rstrip()
        return (lambda each: each.rstrip() == mark) if _ASCIIDOC_BLOCK.match(mark) else None
    if form not in ("markdown", "plain"):
        return None
    if line.lstrip().startswith("<!--") and "-->" not in line:
        return lambda each: "-->" in each
    fence = _FENCE.match(line)
    if fence is None or (fence[1][0] == "`" and "`" in fence[2]):
        return None
    mark = fence[1]

    def closes(each: str) -> bool:
        found = _FENCE.match(each)
        return found is not None and found[1].startswith(mark) and not found[2].strip()

    return closes


def _markdown(text: str) -> Iterator[Heading]:
    paragraph: Line | None = None
    for line in lines_of(text, "markdown"):
        atx = None if line.closed else _ATX.match(line.text)
        setext = None if line.closed or paragraph is None else _SETEXT.match(line.text)
        if atx is not None:
            yield Heading(atx[1], _unclosed(atx[2] or ""), line.start, line.end)
        elif setext is not None and paragraph is not None:
            mark = "#" if setext[1][0] == "=" else "##"
            yield Heading(mark, paragraph.text.strip(), paragraph.start, line.end)
        plain = not line.closed and atx is None and setext is None and not _NO_PARAGRAPH.match(line.text)
        paragraph = line if plain else None


def _unclosed(title: str) -> str:
    """A title without the `#` that may close it."""
    title = title.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


_RULE = re.compile(r"^([=\-`:'\"~^_*+#<>.!])\1{2,}\s*$")


def _rst(text: str) -> Iterator[Heading]:
    lines = lines_of(text, "rst")
    for before, title, under in zip([None, *lines], lines, lines[1:], strict=False):
        rule = _RULE.match(under.text)
        if rule is None or not title.text.strip() or _RULE.match(title.text):
            continue
        over = before is not None and before.text.strip() == under.text.strip()
        if len(under.text.strip()) >= len(title.text.strip()) and (over or not title.text[:1].isspace()):
            start = before.start if over and before is not None else title.start
            yield Heading(rule[1] * (2 if over else 1), title.text.strip(), start, under.end)


_ASCIIDOC_BLOCK = re.compile(r"^(?:-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}\S*)$")
_ASCIIDOC = re.compile(r"^(={1,6})[ \t]+(\S.*)$")


def _asciidoc(text: str) -> Iterator[Heading]:
    for line in lines_of(text, "asciidoc"):
        found = None if line.closed else _ASCIIDOC.match(line.text)
        if found is not None:
            yield Heading(found[1], found[2].strip(), line.start, line.end)


_HTML = lazy(r"<h([1-6])(?:\s[^<>]*+)?>", re.IGNORECASE)
_HTML_ENDS = {level: lazy(rf"(.*?)</h{level}\s*+>", re.IGNORECASE | re.DOTALL) for level in "123456"}
_TAG = lazy(r"<[^<>]*+>")
_HIDDEN = lazy(r"<(!--|(?:script|style|pre)\b)", re.IGNORECASE)
_HIDDEN_ENDS = {"!--": lazy(r".*?-->", re.DOTALL)} | {
    name: lazy(rf".*?</{name}\s*+>", re.IGNORECASE | re.DOTALL) for name in ("script", "style", "pre")
}


def _html(text: str) -> Iterator[Heading]:
    hidden = [(a.start(), b.end()) for a, b in enclosed(text, _HIDDEN, lambda f: f[1].lower(), _HIDDEN_ENDS)]
    for begin, end in enclosed(text, _HTML, lambda found: found[1], _HTML_ENDS):
        before = bisect_left(hidden, (begin.start() + 1, 0)) - 1
        if before < 0 or begin.start() >= hidden[before][1]:
            title = " ".join(_TAG.sub("", end[1]).split())
            yield Heading(f"h{begin[1]}", title, begin.start(), end.end())


_LATEX = lazy(
    r"^[ \t]*\\(part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?(?:\[[^\]]{0,500}+\])?\{(.*)\}",
    re.MULTILINE,
)


def _latex(text: str) -> Iterator[Heading]:
    for found in _LATEX.finditer(text):
        yield Heading(found[1], found[2].strip(), found.start(), found.end())


_NUMBERED = re.compile(
    r"^(?:第\s*[0-9０-９一二三四五六七八九十百]+\s*[章節部編条項]|[■◆▼●◎□◇▽○]\s*\S|【[^】]{1,60}】\s*$"
    r"|(?:[0-9０-９]{1,3}[.．])*[0-9０-９]{1,3}[.．)）]?[ \t\u3000]+\S|[IVX]{1,6}\.[ \t]+\S|[A-Z][A-Z0-9 ,:&'/-]{2,60}$)"
)
_LONGEST = 80


def _plain(text: str) -> Iterator[Heading]:
    """Short lines with nothing beside them that are numbered, marked or underlined."""
    lines = [line for line in lines_of(text, "plain") if not line.closed]
    for n, line in enumerate(lines):
        title = line.text.strip()
        above = lines[n - 1].text.strip() if n else ""
        below = lines[n + 1].text.strip() if n + 1 < len(lines) else ""
        if not title or len(title) > _LONGEST or above:
            continue
        rule = _RULE.match(below)
        if rule is not None and len(below) >= len(title):
            yield Heading(rule[1], title, line.start, lines[n + 1].end)
        elif _NUMBERED.match(title) and not title.endswith(("。", ".", ",", "、", ";")) and not below:
            yield Heading("", title, line.start, line.end)


_READERS: Mapping[DocumentFormat, Callable[[str], Iterator[Heading]]] = MappingProxyType(
    {
        "markdown": _markdown,
        "rst": _rst,
        "asciidoc": _asciidoc,
        "html": _html,
        "latex": _latex,
        "plain": _plain,
    }
)
