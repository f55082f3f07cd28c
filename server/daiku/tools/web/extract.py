"""A web page's main text as Markdown, without hidden parts, in linear time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, assert_never
from urllib.parse import urljoin

from daiku.dataclass import dataclass, replace
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import Text, text
from daiku.tools.rules.web.research import one_line
from daiku.tools.web.markup import EndTag, StartTag, TextToken, tokens
from daiku.tools.web.public_web import FetchResponse, readable
from daiku.workspace import encodings

if TYPE_CHECKING:
    from bs4 import Tag

MAX_NESTING = 100
"""Depth of elements that is kept as structure; what is deeper stays as text."""
MAIN_SHARE = 0.2
"""Part of a page's text that an element must hold to count as its main text."""
_WALK = 40
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_DROPPED = frozenset(
    {
        "script", "style", "noscript", "template", "iframe", "frame", "frameset", "object", "embed", "svg", "canvas", "audio",
        "video", "nav", "footer", "aside", "form", "button", "select", "textarea", "dialog", "title", "math", "map",
    }
)  # fmt: skip
_DROPPED_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "complementary", "search", "menu", "dialog", "alert"}
)
_HIDDEN_CLASSES = frozenset(
    {"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "d-none", "hidden"}
)
_BLOCKS = frozenset(
    {
        "p", "div", "ul", "ol", "dl", "table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "section", "article",
        "main", "header", "footer", "hr", "figure", "address", "details", "nav", "aside", "form", "fieldset",
    }
)  # fmt: skip
_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "option": (frozenset({"option"}), frozenset({"select"})),
}
"""What a start tag ends that nobody closed, and how far out that goes."""
_KEPT = frozenset(
    {
        "p", "div", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "h1",
        "h2", "h3", "h4", "h5", "h6", "pre", "code", "kbd", "samp", "blockquote", "section", "article", "main", "header", "a",
        "b", "strong", "i", "em", "del", "s", "sub", "sup", "q", "figure", "figcaption", "details", "summary", "br", "hr",
    }
)  # fmt: skip
_HIDING = lazy(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0*)?\s*(?:[;!]|$)"
    r"|font-size\s*:\s*0(?:\.0*)?(?:[a-z%]*)\s*(?:[;!]|$)|text-indent\s*:\s*-\d{3}|(?:left|top|right|bottom)\s*:\s*-\d{4}"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*inset\(\s*(?:50|100)%|(?<![-\w])(?:max-)?(?:width|height)\s*:\s*0(?:px)?\s*(?:[;!]|$)"
    r"|(?<![-\w])color\s*:\s*transparent",
    re.IGNORECASE,
)
_SELECTOR = lazy(r"[a-z0-9]*([.#])(-?[_a-zA-Z][\w-]*)")
_CSS_COMMENT = lazy(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/")


def clean(html: str, url: str) -> tuple[str, str]:
    """Return the title, and well-formed HTML of the main text without comments, scripts, navigation and hidden elements."""
    page = _Page(url, _hidden_by_rules(html))
    for token in tokens(html):
        match token:
            case StartTag(tag, attributes):
                page.start(tag, attributes)
            case EndTag(tag):
                page.end(tag)
            case TextToken(text):
                page.text(text)
            case _:
                assert_never(token)
    page.finish()
    return one_line(page.title or page.heading, 200), page.main()


def _hidden_by_rules(html: str) -> frozenset[str]:
    """Classes (`.x`) and ids (`#x`) that the page's own style sheets hide."""
    found: set[str] = set()
    low = html.lower()
    start = low.find("<style")
    while start >= 0 and (end := low.find("</style", start)) >= 0:
        for rule in _CSS_COMMENT.sub("", html[html.find(">", start) + 1 : end]).split("}"):
            selectors, _, body = rule.rpartition("{")
            if _HIDING.search(body):
                matches = (_SELECTOR.fullmatch(each.strip()) for each in selectors.split(","))
                found.update(m[1] + m[2] for m in matches if m)
        start = low.find("<style", end)
    return frozenset(found)


@dataclass(slots=True)
class _Open:
    tag: str
    shown: bool
    region: str = ""
    at: int = 0
    text: int = 0


class _Page:
    """Writes the page anew while reading it. Inside a dropped element only its end is looked for."""

    def __init__(self, url: str, hidden: frozenset[str]) -> None:
        self._url = url
        self.title = ""
        self.heading = ""
        self._hidden = hidden
        self._out: list[str] = []
        self._stack: list[_Open] = []
        self._open: Counter[str] = Counter()
        self._shown = 0
        self._text = 0
        self._skipped = ""
        self._inside: Counter[str] = Counter()
        self._regions: list[tuple[str, int, int, int]] = []
        self._in_region: Counter[str] = Counter()

    def main(self) -> str:
        """The HTML of the one element that holds the main text, else of the whole page."""
        for kind in ("main", "article"):
            found = [region for region in self._regions if region[0] == kind]
            if len(found) == 1 and found[0][3] >= self._text * MAIN_SHARE:
                return "".join(self._out[found[0][1] : found[0][2]])
        return "".join(self._out)

    def finish(self) -> None:
        """Close what the page left open."""
        while self._stack:
            self._pop()

    def start(self, tag: str, given: Mapping[str, str]) -> None:
        if self._skipped:
            if not self._ends_skip(tag):
                self._inside[tag] += tag not in _VOID
                return
            self._skipped = ""
        self._imply_ends(tag)
        if tag in _DROPPED or self._is_hidden(given):
            if tag not in _VOID:
                self._skipped, self._inside = tag, Counter()
            return
        shown = tag in _KEPT and self._shown < MAX_NESTING
        if tag in _VOID:
            if shown:
                self._out.append(f"<{tag}>")
            return
        self._push(tag, given, shown)

    def end(self, tag: str) -> None:
        if self._skipped:
            if self._inside[tag] > 0:
                self._inside[tag] -= 1
                return
            if tag == self._skipped:
                self._skipped = ""
                return
            if not self._open[tag]:
                return
            self._skipped = ""  # its parent ends, so does what was dropped
        if self._open[tag]:
            while self._pop() != tag:
                pass

    def text(self, data: str) -> None:
        if self._skipped:
            if self._skipped == "title" and len(self.title) < 1000:
                self.title += data
            return
        if self._open["h1"] and len(self.heading) < 1000:
            self.heading += data
        self._out.append(escape(data, quote=False))
        self._text += len(data.strip())

    def _push(self, tag: str, given: Mapping[str, str], shown: bool) -> None:
        region = (
            "main" if given.get("role") == "main" else tag if tag in ("main", "article", "header") else ""
        )
        if region and self._in_region[region]:
            region = ""
        self._in_region[region] += 1
        self._stack.append(_Open(tag, shown, region, len(self._out), self._text))
        self._open[tag] += 1
        self._shown += shown
        if shown:
            self._out.append(_start(tag, given, self._url))

    def _pop(self) -> str:
        last = self._stack.pop()
        self._open[last.tag] -= 1
        self._shown -= last.shown
        self._in_region[last.region] -= 1
        if last.shown:
            self._out.append(f"</{last.tag}>")
        if last.region == "header" and not any(piece == "<h1>" for piece in self._out[last.at :]):
            del self._out[last.at :]
            self._text = last.text
        elif last.region:
            self._regions.append((last.region, last.at, len(self._out), self._text - last.text))
        return last.tag

    def _imply_ends(self, tag: str) -> None:
        if tag in _BLOCKS and self._open["p"]:
            self._end_nearest(frozenset({"p"}), _BLOCKS)
        if tag in _ENDS:
            self._end_nearest(*_ENDS[tag])

    def _end_nearest(self, ended: frozenset[str], limits: frozenset[str]) -> None:
        """Close the innermost of `ended`, unless one of `limits` stands further in."""
        for back in range(1, min(len(self._stack), _WALK) + 1):
            tag = self._stack[-back].tag
            if tag in ended:
                for _ in range(back):
                    self._pop()
                return
            if tag in limits:
                return

    def _ends_skip(self, tag: str) -> bool:
        """True where `tag` ends the dropped element because its own end tag may be left out."""
        if self._skipped == "p":
            return tag in _BLOCKS and not +self._inside
        ends = _ENDS.get(tag)
        return (
            ends is not None and self._skipped in ends[0] and not any(self._inside[each] for each in ends[1])
        )

    def _is_hidden(self, given: Mapping[str, str]) -> bool:
        if "hidden" in given or given.get("aria-hidden", "").lower() == "true":
            return True
        if _HIDING.search(given.get("style", "")) or given.get("role", "").lower() in _DROPPED_ROLES:
            return True
        names = given.get("class", "").split()
        if not _HIDDEN_CLASSES.isdisjoint(names):
            return True
        return bool(self._hidden) and (
            f"#{given.get('id', '')}" in self._hidden or any(f".{name}" in self._hidden for name in names)
        )


def _start(tag: str, given: Mapping[str, str], url: str) -> str:
    """The start tag with the attributes that mean something in Markdown."""
    if tag == "a":
        href = _absolute(url, given.get("href", ""))
        return f'<a href="{escape(href)}">' if href else "<a>"
    wanted = {"ol": "start", "pre": "class", "code": "class", "div": "class"}
    name = wanted.get(tag, "")
    return f'<{tag} {name}="{escape(given[name])}">' if given.get(name) else f"<{tag}>"


def _absolute(url: str, href: str) -> str:
    """Where a link leads; "" for what is no address of the web."""
    try:
        whole = urljoin(url, href.strip())
    except ValueError:
        return ""
    return whole if href.strip() and whole.startswith(("http://", "https://")) else ""


MAX_HTML = 1_500_000
"""Characters of HTML that are looked at."""
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_REFUSED = {
    "application/pdf": text("web.is_pdf"),
    "image": text("web.is_picture"),
    "audio": text("web.is_sound"),
    "video": text("web.is_film"),
    "font": text("web.is_font"),
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page as text: Markdown of HTML, everything else as it is."""

    url: str
    title: str
    text: str
    cut: bool = False
    by_proxy: bool = False
    """True where a proxy chose the address behind the name."""


def page_of(answer: FetchResponse) -> Page | Text:
    """The page, or why it is not one for reading."""
    kind = answer.kind
    if not readable(kind):
        why = _REFUSED.get(kind) or _REFUSED.get(kind.partition("/")[0])
        return why or text("web.no_text", kind=kind)
    if answer.body.startswith(b"%PDF-"):
        return _REFUSED["application/pdf"]
    body = text_of(answer)
    if body is None:
        return text("web.is_binary")
    start = body[:1000].lstrip().lower()
    if kind in ("text/html", "application/xhtml+xml") or (
        not kind.startswith("text/") and start.startswith(("<!doctype html", "<html"))
    ):
        page = html_page(answer.url, body, cut=answer.cut)
        return replace(page, by_proxy=answer.by_proxy)
    return Page(answer.url, _title_of_text(body), tidy(_pretty(body, kind)), answer.cut, answer.by_proxy)


def text_of(answer: FetchResponse) -> str | None:
    """The body as text: as the header says, as the page says, else as it looks; None for binary data."""
    body = _whole_characters(answer.body) if answer.cut else answer.body
    said = _META_CHARSET.search(body[:4096]) if "html" in answer.kind or not answer.kind else None
    for name in (answer.charset, said[1].decode("ascii") if said else ""):
        try:
            if name and "\0" not in (text := body.decode(name, "replace")):
                return text.removeprefix("\ufeff")
        except (LookupError, ValueError):
            continue
    found = encodings.decode(body)
    return found.text if found else None


def _whole_characters(body: bytes) -> bytes:
    """UTF-8 that was cut off, without the rest of a character at its end."""
    for back in range(4):
        try:
            body[: len(body) - back].decode()
        except UnicodeDecodeError:
            continue
        return body[: len(body) - back]
    return body


def html_page(url: str, html: str, *, cut: bool = False) -> Page:
    """The main text of an HTML page as Markdown, links made absolute."""
    from markdownify import ATX, MarkdownConverter  # 280 ms that only a page has to pay

    title, main = clean(html[:MAX_HTML], url)
    converter = MarkdownConverter(
        heading_style=ATX,
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_language,
    )
    return Page(url, title, tidy(converter.convert(main)), cut or len(html) > MAX_HTML)


def _language(element: Tag) -> str:
    """The language of a code block, where its classes tell."""
    inner = element.find("code")
    for one in (element, inner, element.parent):
        given = one.get("class") if one is not None else None
        for name in given if isinstance(given, list) else ():
            for prefix in ("language-", "lang-", "highlight-source-", "highlight-"):
                if name.startswith(prefix):
                    return name.removeprefix(prefix)
    return ""


def _pretty(text: str, kind: str) -> str:
    """JSON that stands in one line is laid out."""
    if kind.endswith("json") and text.count("\n") < 2:
        try:
            return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    return text


def _title_of_text(text: str) -> str:
    first = next((line for line in text[:2000].splitlines() if line.strip()), "")
    return one_line(first.lstrip("# "), 120) if first.startswith("#") else ""


def tidy(text: str) -> str:
    """Visible text with no blank space at line ends and never two blank lines."""
    lines = [
        line.rstrip()
        for line in strip_invisible(text.replace("\r\n", "\n").replace("\u00a0", " ")).split("\n")
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
