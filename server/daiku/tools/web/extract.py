"""What a page says to a reader: main text as Markdown, without what nobody sees or nobody needs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from daiku.core.text.visible import strip_invisible
from daiku.core.web.research import one_line
from daiku.dataclass import dataclass, replace
from daiku.texts.text import Text, text
from daiku.tools.web.clean import clean
from daiku.tools.web.public_web import FetchResponse, readable
from daiku.workspace import encodings

if TYPE_CHECKING:
    from bs4 import Tag

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

    page = clean(html[:MAX_HTML], url)
    converter = MarkdownConverter(
        heading_style=ATX,
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_language,
    )
    return Page(url, page.title, tidy(converter.convert(page.html)), cut or len(html) > MAX_HTML)


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
