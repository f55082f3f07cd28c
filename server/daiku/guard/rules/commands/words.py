"""One word of a command line after quotes and escapes, and whether bash would pass on exactly that."""

from __future__ import annotations

import re

from tree_sitter import Node

from daiku.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quotes and escapes.

    `plain`: what bash passes on is exactly `text`; else a part of it is computed and stands in `text` as written.
    `glob`: bash replaces it by file names.
    """

    text: str
    plain: bool = True
    glob: bool = False


_UNSAFE_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[$`(){}<>|&;\"'\s]")
_GLOB = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_BACKSLASH = re.compile(r"\\(\n|.)", re.DOTALL)
_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_COMPUTED = re.compile(r"(?<!\\)(?:\\\\)*[$`]")


def read_word(node: Node, source: bytes) -> Word:
    """Return the shell word for `node` of the syntax tree of `source`."""
    raw = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    match node.type:
        case "word" | "number":
            return _word(raw)
        case "raw_string":
            return Word(raw[1:-1])
        case "string":
            plain = not _COMPUTED.search(raw[1:-1])
            return Word(_IN_QUOTES.sub(_after_backslash, raw[1:-1]), plain)
        case "ansi_c_string":
            return _ansi(raw[2:-1])
        case "concatenation":
            parts = [read_word(child, source) for child in node.children]
            joined = "".join(p.text for p in parts)
            # Bytes between the parts would be text that nothing accounts for.
            whole = sum(c.end_byte - c.start_byte for c in node.children) == node.end_byte - node.start_byte
            return Word(joined, whole and all(p.plain for p in parts), any(p.glob for p in parts))
        case _:
            return Word(raw, plain=False)


def _after_backslash(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _word(raw: str) -> Word:
    plain = not _UNSAFE_IN_WORD.search(raw) and not raw.endswith("\\") and raw.isprintable()
    return Word(_BACKSLASH.sub(_after_backslash, raw), plain, bool(_GLOB.search(raw)))


_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_NAMED = dict(zip("ntrabeEfv", "\n\t\r\a\b\x1b\x1b\f\v", strict=True))


def _ansi(raw: str) -> Word:
    plain = True

    def one(found: re.Match[str]) -> str:
        nonlocal plain
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif code[0] in "01234567":
            number = int(code, 8)
        elif code[0] == "c" and len(code) > 1:
            number = ord(code[1]) & 0x1F
        else:
            return _ANSI_NAMED.get(code, code)
        if not 0 < number < 0x110000:
            plain = False
            return ""
        return chr(number)

    text = _ANSI.sub(one, raw)
    return Word(text, plain)
