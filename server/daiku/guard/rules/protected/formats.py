"""Addresses and settings in files, read as tolerantly as editors read them: JSON, YAML, TOML, XML, Markdown, notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import cast

from daiku.texts.rules.patterns import lazy

DEEPEST = 32
"""Levels of nested objects whose keys are told; nothing that readers act on lies deeper."""
_TOKEN = lazy(
    r"(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<mark>[{}\[\]:,])|(?P<bare>[^\s\"'{}\[\]:,/]+|.)",
    re.DOTALL,
)
_ESCAPE = lazy(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def json_strings(content: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Read every string value with the keys that lead to it.

    Accepts comments, missing or trailing commas, JSON5 quotes and bare keys, and a key that stands twice.
    """
    path: list[str] = []
    key, last = "", ""
    for found in _TOKEN.finditer(content):
        match found.lastgroup:
            case "string" | "bare":
                token = found[0]
                last = _unquoted(token) if found.lastgroup == "string" else token
                if found.lastgroup == "string":
                    yield tuple(part for part in (*path[:DEEPEST], key) if part), last
            case "mark":
                match found[0]:
                    case ":":
                        key = last
                    case "{" | "[":
                        path.append(key)
                        key = ""
                    case "}" | "]":
                        if path:
                            path.pop()
                        key = ""
                    case _:
                        key = ""
            case _:
                pass


def _unquoted(token: str) -> str:
    inner = token[1:-1] if len(token) > 1 and token[-1] == token[0] else token[1:]
    return _ESCAPE.sub(_character, inner)


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else found[3]


_MODELINE = lazy(
    r"^[^#\n]*#.*?\$schema[ \t]*[=:][ \t]*[\"']?(?P<url>[^\s\"']+)", re.MULTILINE | re.IGNORECASE
)
_YAML_KEY = lazy(
    r"(?:^|[{,\s-])[\"']?\$(?:schema|ref)[\"']?\s*:\s+(?:[>|][-+\d]*\s+|&\S+\s+|!\S*\s+)*[\"']?(?P<url>[^\s\"',}]+)",
    re.MULTILINE,
)


_YAML_ANCHOR = lazy(r"&[^\s,\[\]{}]+\s+[\"']?(?P<url>[^\s\"',}]+)")


def yaml_schemas(content: str) -> Iterator[str]:
    """Find the schemas that a YAML file names: in a comment for the language server, or under a key."""
    for text in dict.fromkeys((content, _ESCAPE.sub(_character, content))):
        yield from (found["url"] for found in _MODELINE.finditer(text))
        named = [found["url"] for found in _YAML_KEY.finditer(text)]
        yield from named
        if any(url.startswith("*") for url in named):
            yield from (found["url"] for found in _YAML_ANCHOR.finditer(text))
    if content.lstrip().startswith(("{", "[")):
        yield from (value for path, value in json_strings(content) if path[-1:] in (("$schema",), ("$ref",)))


_TOML_LINE = lazy(
    r"^[ \t]*(?:#[ \t]*:[ \t]*schema[ \t]+|#.*?\$schema[ \t]*[=:][ \t]*|[\"']?\$schema[\"']?[ \t]*=\s*)[\"']*(?P<url>[^\s\"']+)",
    re.MULTILINE | re.IGNORECASE,
)


def toml_schemas(content: str) -> Iterator[str]:
    """Find the schemas that a TOML file names: in a directive (`#:schema`), or under a key."""
    import tomllib  # when used

    yield from (found["url"] for found in _TOML_LINE.finditer(content))
    try:
        value = tomllib.loads(content).get("$schema") if "schema" in content or "\\" in content else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str):
        yield value


_INSIDE = r"""((?:[^<>"']|"[^"<]*"|'[^'<]*')*)"""
_DOCTYPE = lazy(
    r"""<!(?:DOCTYPE|ENTITY(?:\s+%)?)\s+\S+\s+(?:SYSTEM|PUBLIC\s*(?:"[^"]*"|'[^']*'))\s*(?:"(?P<a>[^"]*)"|'(?P<b>[^']*)')""",
    re.IGNORECASE,
)
_LOADING = lazy(
    r"<(?:\?xml-(?:model|stylesheet)|(?:\w+:)?(?:include|import|redefine|externalRef))\b" + _INSIDE,
    re.IGNORECASE,
)
_ATTRIBUTE = lazy(r"(?:^|[\s:])(?P<name>[\w-]+)\s*=\s*(?:\"(?P<a>[^\"]*)\"|'(?P<b>[^']*)')")


def xml_addresses(content: str) -> Iterator[str]:
    """Find the addresses that a reader of XML loads: DTDs, entities, schemas, stylesheets, inclusions."""
    for found in _DOCTYPE.finditer(content):
        yield unescape(found["a"] or found["b"] or "")
    for name, value in _attributes(content):
        if name == "schemalocation":
            words = value.split()
            yield from words[1::2] if len(words) > 1 else words
        elif name == "nonamespaceschemalocation":
            yield from value.split()
    for found in _LOADING.finditer(content):
        yield from (value for name, value in _attributes(found[1]) if name in ("href", "schemalocation"))


def _attributes(content: str) -> Iterator[tuple[str, str]]:
    for found in _ATTRIBUTE.finditer(content):
        yield found["name"].lower(), unescape(found["a"] or found["b"] or "")


_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'<][^\s><]*+)"""
_NAME = r"[^\s/><][^\s/>=<]*+"
_TAG = lazy(
    rf"<(?P<name>[a-z][^\s/><]*+)(?P<inside>(?>(?:[\s/]++|{_NAME}(?>(?:\s*+=\s*+(?>(?:{_VALUE})?))?))*))",
    re.IGNORECASE,
)
"""Start tags as the HTML standard reads them, except that `<` always begins a new one, as in Markdown."""
_PAIR = lazy(rf"(?P<name>{_NAME})\s*+=\s*+(?P<value>{_VALUE})")
_CLICKED = frozenset(["a", "area", "button", "form", "input"])
"""Elements whose addresses are loaded after a click, except those of _LOADED."""
_LOADED = lazy(r"src|poster|background|data|(?:image)?srcset|srcdoc|style|ping")
_INERT = lazy(r"alt|title|cite|item\w+|(?:aria|data)-.*|(?!xlink:href$|xml:base$)[^:]*:.*", re.DOTALL)
"""Attributes that are text, or the name of something."""
_STYLE = lazy(r"<(?:\w+:)?style", re.IGNORECASE)
_CSS_ESCAPE = lazy(r"\\([0-9a-fA-F]{1,6})\s?")
_CSS_URL = lazy(
    r"(?:(?:https?|ftps?|wss?):[\\/]{0,2}|(?:[a-z][a-z0-9+.-]{1,20}:|(?<![^\s\"'(,;={|]))[\\/]{2})[^\s\"')<>]{1,4000}",
    re.IGNORECASE,
)
_LINE_BREAKS = lazy(r"[\t\r\n]+")


def find_preview_addresses(content: str, *, xml: bool = False) -> Iterator[str]:
    """Find the addresses that are loaded when `content` is shown as HTML, or as a picture in `xml`.

    Every attribute with an address counts, in every element that needs no click.
    """
    for tag in _TAG.finditer(content):
        is_clicked = tag["name"].lower().rpartition(":")[2] in _CLICKED
        for pair in _PAIR.finditer(tag["inside"]):
            name, value = pair["name"].lower(), unescape(pair["value"].strip("\"'"))
            loads = _LOADED.fullmatch(name) if is_clicked else not _INERT.fullmatch(name)
            if loads or "<" in value:
                yield value
                yield from _find_css_addresses(unescape(value))
    if style := _STYLE.search(content):
        css = content[style.start() :]
        yield from _find_css_addresses(unescape(_TAG.sub(" ", css)) if xml else css)


def _decode_css_escape(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _find_css_addresses(style: str) -> Iterator[str]:
    # A browser removes line breaks from an address.
    for text in dict.fromkeys((style, _LINE_BREAKS.sub("", style))):
        yield from _CSS_URL.findall(_CSS_ESCAPE.sub(_decode_css_escape, text))


_DEFINITION = lazy(r"^(?:[ >]|[-*+]\s|\d+[.)]\s)*\[(?P<label>[^\]]+)\]:\s*<?(?P<url>[^\s>]+)", re.MULTILINE)
_BRACKETS = lazy(r"\\.|!\[|\[|\]|\n[ \t>]*\n", re.DOTALL)
_TARGET = lazy(r"\(\s*(?:<(?P<a>[^>\n]{0,4000})>|(?P<b>[^\s)]{1,4000}))")
_BACKSLASH = lazy(r"\\([!-/:-@\[-`{-~])")


def markdown_pictures(content: str) -> Iterator[str]:
    """Find the addresses of pictures in Markdown, in its HTML too."""
    used = False
    open_brackets: list[bool] = []
    loose = False
    for found in _BRACKETS.finditer(content):
        match found[0]:
            case "![" | "[":
                open_brackets.append(found[0] == "![")
            case "]":
                picture = open_brackets.pop() if open_brackets else loose
                target = _TARGET.match(content, found.end()) if picture else None
                if target is not None:
                    yield _plain(target["a"] or target["b"] or "")
                # A bracket inside a code span closes nothing: the picture may go on.
                loose = loose or (picture and target is None)
                used = used or picture
            case mark if mark.startswith("\n"):
                open_brackets, loose = [], False
            case _:
                pass
    if used:
        yield from (_plain(found["url"]) for found in _DEFINITION.finditer(content))
    if "<" in content:
        yield from find_preview_addresses(content)


def _plain(target: str) -> str:
    return unescape(_BACKSLASH.sub(r"\1", target))


_MARKUP = frozenset(["text/html", "image/svg+xml", "text/markdown", "text/latex"])


def notebook_pictures(content: str) -> Iterator[str]:
    """Find the addresses of pictures in the cells and outputs of a notebook."""
    try:
        cells = _objects(_objects([json.loads(content)])[0].get("cells"))
    except (ValueError, IndexError, RecursionError):
        # Jupyter does not open it; an editor that does shows its strings.
        for _, value in json_strings(content):
            yield from markdown_pictures(value)
        return
    for cell in cells:
        if cell.get("cell_type") != "code":
            yield from markdown_pictures(_join_source(cell.get("source")))
        for output in _objects(cell.get("outputs")):
            for data in _objects([output.get("data")]):
                for kind in _MARKUP & data.keys():
                    yield from markdown_pictures(_join_source(data[kind]))


def _objects(value: object) -> list[dict[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]


def _join_source(source: object) -> str:
    return "".join(map(str, cast("list[object]", source))) if isinstance(source, list) else str(source or "")
