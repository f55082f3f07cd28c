"""Parse the headings of a document by its format, and find those that a new text lost (R1.60)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from daiku.domain.work.documents import DocumentFormat
from daiku.texts.rules.omissions import enclosed
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


def detect_format(path: str) -> DocumentFormat:
    """Return the format of a document by its file suffix; `plain` if unknown."""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "plain")


def is_prose(path: str) -> bool:
    """Return True if the file's suffix is one of a prose format."""
    return detect_format(path) != "plain" or PurePosixPath(path).suffix.lower() in (".txt", ".text")


class Heading(NamedTuple):
    """A heading: its level mark, title, and range in the text (code points)."""

    mark: str
    title: str
    start: int
    end: int

    def format(self) -> str:
        """Return the heading as displayed to people and models."""
        return f"{self.mark} {self.title}".strip() if self.mark.startswith(("#", "=")) else self.title


class DocumentLine(NamedTuple):
    """A line without its end, its range, and whether it is in code, a comment, or front matter (`closed`)."""

    text: str
    start: int
    end: int
    closed: bool


def find_headings(text: str, form: DocumentFormat) -> tuple[Heading, ...]:
    """Return the headings of a document in order; `#` lines in code are not headings."""
    return tuple(_READERS[form](text))


def find_lost_headings(old: str, new: str, form: DocumentFormat) -> tuple[Heading, ...]:
    """Return the headings of `old` that are missing in `new` or out of order; new ones may be between."""
    places_by_heading: dict[tuple[str, str], list[int]] = {}
    for index, heading in enumerate(find_headings(new, form)):
        places_by_heading.setdefault((heading.mark, " ".join(heading.title.split())), []).append(index)
    lost: list[Heading] = []
    position = 0
    for heading in find_headings(old, form):
        places = places_by_heading.get((heading.mark, " ".join(heading.title.split())), [])
        next_place = bisect_left(places, position)
        if next_place < len(places):
            position = places[next_place] + 1
        else:
            lost.append(heading)
    return tuple(lost)


def find_front_matter_end(text: str) -> int:
    """Return the offset after the front matter's last line; 0 if there is no front matter."""
    match = _FRONT.match(text)
    return match.end() if match is not None else 0


_FRONT = lazy(
    r"\A(?P<mark>---|\+\+\+)[ \t]*\r?\n(?![ \t]*\r?\n)(?:.*\r?\n){0,200}?(?P=mark)[ \t]*(?:\r?\n|\Z)"
)
_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?)*(?:[-*+][ \t]+)?(`{3,}|~{3,})(.*)$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(
    r"^(?:\s*$| {0,3}(?:#{1,6}(?:\s|$)|>|[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|\|)|\t| {4})"
)


def split_document_lines(text: str, form: DocumentFormat) -> list[DocumentLine]:
    """Return the lines of a document; those in code, comments, and front matter are `closed`."""
    lines: list[DocumentLine] = []
    front_end = find_front_matter_end(text) if form in ("markdown", "html", "plain", "asciidoc") else 0
    is_end: Callable[[str], bool] | None = None
    start = 0
    for raw in text.split("\n"):
        end = start + len(raw)
        line = raw.removesuffix("\r")
        if start < front_end:
            closed = True
        elif is_end is not None:
            closed = True
            is_end = None if is_end(line) else is_end
        else:
            is_end = _find_block_end(line, form)
            closed = is_end is not None
        lines.append(DocumentLine(line, start, min(end + 1, len(text)), closed))
        start = end + 1
    return lines


def _find_block_end(line: str, form: DocumentFormat) -> Callable[[str], bool] | None:
    """Return a function that recognizes the end of the code or comment begun by `line`; None if none begins."""
    if form == "asciidoc":
        mark = line.rstrip()
        return (lambda other: other.rstrip() == mark) if _ASCIIDOC_BLOCK.match(mark) else None
    if form not in ("markdown", "plain"):
        return None
    if line.lstrip().startswith("<!--") and "-->" not in line:
        return lambda other: "-->" in other
    fence = _FENCE.match(line)
    if fence is None or (fence[1][0] == "`" and "`" in fence[2]):
        return None
    mark = fence[1]

    def is_end(other: str) -> bool:
        match = _FENCE.match(other)
        return match is not None and match[1].startswith(mark) and not match[2].strip()

    return is_end


def _read_markdown(text: str) -> Iterator[Heading]:
    paragraph: DocumentLine | None = None
    for line in split_document_lines(text, "markdown"):
        atx = None if line.closed else _ATX.match(line.text)
        setext = None if line.closed or paragraph is None else _SETEXT.match(line.text)
        if atx is not None:
            yield Heading(atx[1], _strip_closing_marks(atx[2] or ""), line.start, line.end)
        elif setext is not None and paragraph is not None:
            mark = "#" if setext[1][0] == "=" else "##"
            yield Heading(mark, paragraph.text.strip(), paragraph.start, line.end)
        plain = not line.closed and atx is None and setext is None and not _NO_PARAGRAPH.match(line.text)
        paragraph = line if plain else None


def _strip_closing_marks(title: str) -> str:
    """Return a title without its closing `#` marks."""
    title = title.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


_RULE = re.compile(r"^([=\-`:'\"~^_*+#<>.!])\1{2,}\s*$")


def _read_rst(text: str) -> Iterator[Heading]:
    lines = split_document_lines(text, "rst")
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


def _read_asciidoc(text: str) -> Iterator[Heading]:
    for line in split_document_lines(text, "asciidoc"):
        match = None if line.closed else _ASCIIDOC.match(line.text)
        if match is not None:
            yield Heading(match[1], match[2].strip(), line.start, line.end)


_HTML = lazy(r"<h([1-6])(?:\s[^<>]*+)?>", re.IGNORECASE)
_HTML_ENDS = {level: lazy(rf"(.*?)</h{level}\s*+>", re.IGNORECASE | re.DOTALL) for level in "123456"}
_TAG = lazy(r"<[^<>]*+>")
_HIDDEN = lazy(r"<(!--|(?:script|style|pre)\b)", re.IGNORECASE)
_HIDDEN_ENDS = {"!--": lazy(r".*?-->", re.DOTALL)} | {
    name: lazy(rf".*?</{name}\s*+>", re.IGNORECASE | re.DOTALL) for name in ("script", "style", "pre")
}


def _read_html(text: str) -> Iterator[Heading]:
    hidden = [(a.start(), b.end()) for a, b in enclosed(text, _HIDDEN, lambda f: f[1].lower(), _HIDDEN_ENDS)]
    for begin, end in enclosed(text, _HTML, lambda match: match[1], _HTML_ENDS):
        before = bisect_left(hidden, (begin.start() + 1, 0)) - 1
        if before < 0 or begin.start() >= hidden[before][1]:
            title = " ".join(_TAG.sub("", end[1]).split())
            yield Heading(f"h{begin[1]}", title, begin.start(), end.end())


_LATEX = lazy(
    r"^[ \t]*\\(part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?(?:\[[^\]]{0,500}+\])?\{(.*)\}",
    re.MULTILINE,
)


def _read_latex(text: str) -> Iterator[Heading]:
    for match in _LATEX.finditer(text):
        yield Heading(match[1], match[2].strip(), match.start(), match.end())


_NUMBERED = re.compile(
    r"^(?:第\s*[0-9０-９一二三四五六七八九十百]+\s*[章節部編条項]|[■◆▼●◎□◇▽○]\s*\S|【[^】]{1,60}】\s*$"
    r"|(?:[0-9０-９]{1,3}[.．])*[0-9０-９]{1,3}[.．)）]?[ \t\u3000]+\S|[IVX]{1,6}\.[ \t]+\S|[A-Z][A-Z0-9 ,:&'/-]{2,60}$)"
)
_LONGEST = 80


def _read_plain(text: str) -> Iterator[Heading]:
    """Yield short lines between blank lines that are numbered, marked, or underlined."""
    lines = [line for line in split_document_lines(text, "plain") if not line.closed]
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
        "markdown": _read_markdown,
        "rst": _read_rst,
        "asciidoc": _read_asciidoc,
        "html": _read_html,
        "latex": _read_latex,
        "plain": _read_plain,
    }
)
