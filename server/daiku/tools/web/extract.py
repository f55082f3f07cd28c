"""Convert the main text of a web page to Markdown, without hidden parts, in linear time."""

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
from daiku.tools.rules.web.research import to_one_line
from daiku.tools.web.markup import EndTag, StartTag, TextToken, tokenize
from daiku.tools.web.public_web import FetchResponse, is_readable
from daiku.workspace import encodings

if TYPE_CHECKING:
    from bs4 import Tag

MAX_NESTING = 100
"""Levels of elements that are preserved. Deeper ones become text."""
MAIN_SHARE = 0.2
"""Share of a page's text that an element must contain to be the main text."""
_MAX_WALK = 40
"""Open elements that are searched for one to close."""
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
_IMPLIED_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "option": (frozenset({"option"}), frozenset({"select"})),
}
"""Elements that a start tag closes implicitly, and the elements that limit the search."""
_PRESERVED = frozenset(
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


def extract_main(html: str, url: str) -> tuple[str, str]:
    """Return the title and the main text as well-formed HTML, without scripts, navigation, and hidden parts."""
    page = _PageWriter(url, _find_hidden_selectors(html))
    for token in tokenize(html):
        match token:
            case StartTag(tag, attributes):
                page.add_start(tag, attributes)
            case EndTag(tag):
                page.add_end(tag)
            case TextToken(text):
                page.text(text)
            case _:
                assert_never(token)
    page.finish()
    return to_one_line(page.title or page.heading, 200), page.extract_main_html()


def _find_hidden_selectors(html: str) -> frozenset[str]:
    """Return the classes (`.x`) and ids (`#x`) that the page's own style sheets hide."""
    hidden: set[str] = set()
    lower = html.lower()
    start = lower.find("<style")
    while start >= 0 and (end := lower.find("</style", start)) >= 0:
        for rule in _CSS_COMMENT.sub("", html[html.find(">", start) + 1 : end]).split("}"):
            selectors, _, body = rule.rpartition("{")
            if _HIDING.search(body):
                matches = (_SELECTOR.fullmatch(selector.strip()) for selector in selectors.split(","))
                hidden.update(m[1] + m[2] for m in matches if m)
        start = lower.find("<style", end)
    return frozenset(hidden)


@dataclass(slots=True)
class _OpenElement:
    tag: str
    shown: bool
    region: str = ""
    at: int = 0
    text: int = 0


class _PageWriter:
    """Writer of a cleaned page. Inside a dropped element it only looks for the element's end."""

    def __init__(self, url: str, hidden: frozenset[str]) -> None:
        self._url = url
        self.title = ""
        self.heading = ""
        self._hidden = hidden
        self._out: list[str] = []
        self._stack: list[_OpenElement] = []
        self._open: Counter[str] = Counter()
        self._shown = 0
        self._text = 0
        self._skipped = ""
        self._inside: Counter[str] = Counter()
        self._regions: list[tuple[str, int, int, int]] = []
        self._in_region: Counter[str] = Counter()

    def extract_main_html(self) -> str:
        """Return the HTML of the single element with the main text, else of the complete page."""
        for kind in ("main", "article"):
            matching = [region for region in self._regions if region[0] == kind]
            if len(matching) == 1 and matching[0][3] >= self._text * MAIN_SHARE:
                return "".join(self._out[matching[0][1] : matching[0][2]])
        return "".join(self._out)

    def finish(self) -> None:
        """Close the elements that are still open."""
        while self._stack:
            self._pop()

    def add_start(self, tag: str, attrs: Mapping[str, str]) -> None:
        if self._skipped:
            if not self._ends_skip(tag):
                self._inside[tag] += tag not in _VOID
                return
            self._skipped = ""
        self._imply_ends(tag)
        if tag in _DROPPED or self._is_hidden(attrs):
            if tag not in _VOID:
                self._skipped, self._inside = tag, Counter()
            return
        is_shown = tag in _PRESERVED and self._shown < MAX_NESTING
        if tag in _VOID:
            if is_shown:
                self._out.append(f"<{tag}>")
            return
        self._push(tag, attrs, is_shown)

    def add_end(self, tag: str) -> None:
        if self._skipped:
            if self._inside[tag] > 0:
                self._inside[tag] -= 1
                return
            if tag == self._skipped:
                self._skipped = ""
                return
            if not self._open[tag]:
                return
            self._skipped = ""  # its parent ends, and so does the dropped element
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

    def _push(self, tag: str, attrs: Mapping[str, str], is_shown: bool) -> None:
        region = (
            "main" if attrs.get("role") == "main" else tag if tag in ("main", "article", "header") else ""
        )
        if region and self._in_region[region]:
            region = ""
        self._in_region[region] += 1
        self._stack.append(_OpenElement(tag, is_shown, region, len(self._out), self._text))
        self._open[tag] += 1
        self._shown += is_shown
        if is_shown:
            self._out.append(_format_start_tag(tag, attrs, self._url))

    def _pop(self) -> str:
        element = self._stack.pop()
        self._open[element.tag] -= 1
        self._shown -= element.shown
        self._in_region[element.region] -= 1
        if element.shown:
            self._out.append(f"</{element.tag}>")
        if element.region == "header" and not any(piece == "<h1>" for piece in self._out[element.at :]):
            del self._out[element.at :]
            self._text = element.text
        elif element.region:
            self._regions.append((element.region, element.at, len(self._out), self._text - element.text))
        return element.tag

    def _imply_ends(self, tag: str) -> None:
        if tag in _BLOCKS and self._open["p"]:
            self._end_nearest(frozenset({"p"}), _BLOCKS)
        if tag in _IMPLIED_ENDS:
            self._end_nearest(*_IMPLIED_ENDS[tag])

    def _end_nearest(self, closable: frozenset[str], limits: frozenset[str]) -> None:
        """Close the innermost of `closable`, unless one of `limits` is further in."""
        for depth in range(1, min(len(self._stack), _MAX_WALK) + 1):
            tag = self._stack[-depth].tag
            if tag in closable:
                for _ in range(depth):
                    self._pop()
                return
            if tag in limits:
                return

    def _ends_skip(self, tag: str) -> bool:
        """Return True if `tag` ends the dropped element, whose end tag is optional."""
        if self._skipped == "p":
            return tag in _BLOCKS and not +self._inside
        ends = _IMPLIED_ENDS.get(tag)
        return (
            ends is not None and self._skipped in ends[0] and not any(self._inside[each] for each in ends[1])
        )

    def _is_hidden(self, attrs: Mapping[str, str]) -> bool:
        if "hidden" in attrs or attrs.get("aria-hidden", "").lower() == "true":
            return True
        if _HIDING.search(attrs.get("style", "")) or attrs.get("role", "").lower() in _DROPPED_ROLES:
            return True
        names = attrs.get("class", "").split()
        if not _HIDDEN_CLASSES.isdisjoint(names):
            return True
        return bool(self._hidden) and (
            f"#{attrs.get('id', '')}" in self._hidden or any(f".{name}" in self._hidden for name in names)
        )


def _format_start_tag(tag: str, attrs: Mapping[str, str], url: str) -> str:
    """Return the start tag with the attributes that affect Markdown."""
    if tag == "a":
        href = _resolve_link(url, attrs.get("href", ""))
        return f'<a href="{escape(href)}">' if href else "<a>"
    relevant = {"ol": "start", "pre": "class", "code": "class", "div": "class"}
    name = relevant.get(tag, "")
    return f'<{tag} {name}="{escape(attrs[name])}">' if attrs.get(name) else f"<{tag}>"


def _resolve_link(url: str, href: str) -> str:
    """Return the absolute URL of a link; "" if it is not http or https."""
    try:
        absolute = urljoin(url, href.strip())
    except ValueError:
        return ""
    return absolute if href.strip() and absolute.startswith(("http://", "https://")) else ""


MAX_HTML = 1_500_000
"""Characters of HTML that are parsed."""
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_UNREADABLE = {
    "application/pdf": text("web.is_pdf"),
    "image": text("web.is_picture"),
    "audio": text("web.is_sound"),
    "video": text("web.is_film"),
    "font": text("web.is_font"),
}


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text: Markdown for HTML, otherwise the text unchanged."""

    url: str
    title: str
    text: str
    cut: bool = False
    by_proxy: bool = False
    """True if a proxy resolved the host name, so that its address was not checked."""


def build_page(answer: FetchResponse) -> WebPage | Text:
    """Build the page, or return why it is not readable text."""
    kind = answer.kind
    if not is_readable(kind):
        reason = _UNREADABLE.get(kind) or _UNREADABLE.get(kind.partition("/")[0])
        return reason or text("web.no_text", kind=kind)
    if answer.body.startswith(b"%PDF-"):
        return _UNREADABLE["application/pdf"]
    body = decode_body(answer)
    if body is None:
        return text("web.is_binary")
    start = body[:1000].lstrip().lower()
    if kind in ("text/html", "application/xhtml+xml") or (
        not kind.startswith("text/") and start.startswith(("<!doctype html", "<html"))
    ):
        page = build_html_page(answer.url, body, cut=answer.cut)
        return replace(page, by_proxy=answer.by_proxy)
    return WebPage(
        answer.url, _find_title(body), tidy_whitespace(_indent_json(body, kind)), answer.cut, answer.by_proxy
    )


def decode_body(answer: FetchResponse) -> str | None:
    """Decode the body by the header, by the page's meta tag, or by detection; None for binary data."""
    body = _drop_partial_character(answer.body) if answer.cut else answer.body
    meta_charset = _META_CHARSET.search(body[:4096]) if "html" in answer.kind or not answer.kind else None
    for name in (answer.charset, meta_charset[1].decode("ascii") if meta_charset else ""):
        try:
            if name and "\0" not in (text := body.decode(name, "replace")):
                return text.removeprefix("\ufeff")
        except (LookupError, ValueError):
            continue
    decoded = encodings.decode(body)
    return decoded.text if decoded else None


def _drop_partial_character(body: bytes) -> bytes:
    """Drop an incomplete UTF-8 character at the end of a truncated body."""
    for dropped in range(4):
        try:
            body[: len(body) - dropped].decode()
        except UnicodeDecodeError:
            continue
        return body[: len(body) - dropped]
    return body


def build_html_page(url: str, html: str, *, cut: bool = False) -> WebPage:
    """Convert the main text of an HTML page to Markdown, with absolute links."""
    from markdownify import ATX, MarkdownConverter  # when used: the import takes 280 ms

    title, main = extract_main(html[:MAX_HTML], url)
    converter = MarkdownConverter(
        heading_style=ATX,
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_find_language,
    )
    return WebPage(url, title, tidy_whitespace(converter.convert(main)), cut or len(html) > MAX_HTML)


def _find_language(element: Tag) -> str:
    """Return the language of a code block by its classes; empty if unknown."""
    inner = element.find("code")
    for candidate in (element, inner, element.parent):
        classes = candidate.get("class") if candidate is not None else None
        for name in classes if isinstance(classes, list) else ():
            for prefix in ("language-", "lang-", "highlight-source-", "highlight-"):
                if name.startswith(prefix):
                    return name.removeprefix(prefix)
    return ""


def _indent_json(text: str, kind: str) -> str:
    """Indent JSON that is on one line."""
    if kind.endswith("json") and text.count("\n") < 2:
        try:
            return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    return text


def _find_title(text: str) -> str:
    first = next((line for line in text[:2000].splitlines() if line.strip()), "")
    return to_one_line(first.lstrip("# "), 120) if first.startswith("#") else ""


def tidy_whitespace(text: str) -> str:
    """Remove invisible characters, trailing spaces, and repeated blank lines."""
    lines = [
        line.rstrip()
        for line in strip_invisible(text.replace("\r\n", "\n").replace("\u00a0", " ")).split("\n")
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
