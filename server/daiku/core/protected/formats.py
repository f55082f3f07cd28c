"""Addresses and settings in files, read as tolerantly as editors read them: JSON, YAML, TOML, XML, Markdown, notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import cast

from daiku.core.text.patterns import lazy

DEEPEST = 32
"""Levels of nested objects whose keys are told; nothing that readers act on lies deeper."""
_TOKEN = lazy(
    r"(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<mark>[{}\[\]:,])|(?P<bare>[^\s\"'{}\[\]:,/]+|.)",
    re.DOTALL,
)
_ESCAPE = lazy(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def json_strings(content: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Read every string value with the keys that lead to it. Accepts comments, missing or trailing commas,
    JSON5 quotes and bare keys, and a key that stands twice."""
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


def yaml_schemas(content: str) -> Iterator[str]:
    """Find the schemas that a YAML file names: in a comment for the language server, or under a key."""
    for text in dict.fromkeys((content, _ESCAPE.sub(_character, content))):
        yield from (found["url"] for found in _MODELINE.finditer(text))
        yield from (found["url"] for found in _YAML_KEY.finditer(text))
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


_SOURCE = lazy(
    r"""(?:^|[\s"'/])(?P<name>src|poster|background|data|xlink:href|(?:image)?srcset|style)\s*=\s*"""
    r"""(?:"(?P<a>[^"]*)"|'(?P<b>[^']*)'|(?P<c>[^\s>"']{1,4000}))""",
    re.IGNORECASE,
)
_LINK = lazy(r"<(?:link|image|use|base|feimage)\b" + _INSIDE, re.IGNORECASE)
_HREF = lazy(r"""\bhref\s*=\s*(?:"(?P<a>[^"]*)"|'(?P<b>[^']*)'|(?P<c>[^\s>"']{1,4000}))""", re.IGNORECASE)
_STYLE = lazy(r"<style", re.IGNORECASE)
_CSS_ESCAPE = lazy(r"\\([0-9a-fA-F]{1,6})\s?")
_CSS_URL = lazy(r"(?:[a-z][a-z0-9+.-]{1,20}:)?[\\/]{2}[^\s\"')]{1,4000}", re.IGNORECASE)


def _html_addresses(content: str) -> Iterator[str]:
    """Find the addresses that are loaded when `content` is shown as HTML."""
    for found in _SOURCE.finditer(content):
        value = unescape(found["a"] or found["b"] or found["c"] or "")
        if found["name"].lower().endswith("srcset"):
            yield from (part.split()[0] for part in value.split(",") if part.strip())
        elif found["name"].lower() != "style":
            yield value
        else:
            yield from _find_css_addresses(value)
    for tag in _LINK.finditer(content):
        yield from (
            unescape(found["a"] or found["b"] or found["c"] or "") for found in _HREF.finditer(tag[1])
        )
    if style := _STYLE.search(content):
        yield from _find_css_addresses(content[style.start() :])


def _decode_css_escape(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _find_css_addresses(style: str) -> list[str]:
    return _CSS_URL.findall(_CSS_ESCAPE.sub(_decode_css_escape, style))


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
        yield from _html_addresses(content)


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
