"""Words of models and strangers as Markdown in which nothing acts: no mention, reference, image, HTML or quick action."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.rules.visible import strip_invisible

MOST_WORDS = 20_000
"""Characters of somebody's words in one comment."""
MOST_LINE = 300
"""Characters of what stands on one line: a step, a title, a command."""
_OPENS = lazy(r"^[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[ \t]*(?P<kind>[\w+#.-]*).*$")
_ACTING_KINDS = frozenset(
    ["geojson", "math", "mermaid", "stl", "suggestion", "topojson", "plantuml", "c4plantuml", "puml", "vega", "vegalite", "d2", "structurizr", "kroki"]
)  # fmt: skip
"""Fenced blocks that a forge does not show as code, or that a service draws, which may fetch what they include."""
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


def harmless(markdown: str) -> str:
    """Somebody's Markdown as text that only tells. Mentions and references become code, HTML and images are shown as
    they are written; code stays code, in fences of our own, so that nothing can stand open behind it."""
    lines = iter(truncate_middle(_plain_lines(markdown), MOST_WORDS).splitlines())
    done: list[str] = []
    for line in lines:
        opened = _OPENS.match(line)
        if opened is None:
            done.append(_acts_not(_inline(line)))
        else:
            kind = opened["kind"] if opened["kind"].lower() not in _ACTING_KINDS else ""
            done += _block(kind, list(_until_closed(lines, opened["fence"])))
    return "\n".join(done).strip()


def harmless_line(words: str, limit: int = MOST_LINE) -> str:
    """The same for what stands within a line of ours, such as the name of a step."""
    return _inline(_one_line(words, limit))


def plain_line(words: str, limit: int = MOST_LINE) -> str:
    """The same where there is no Markdown: a title, the first line of a commit. The signs that would act are left out."""
    return _LINE_SIGN.sub("", re.sub(r"\bGH-(?=\d)", "GH ", _one_line(words, limit)))


def commit_words(message: str) -> str:
    """Return a commit message without mentions, closing references, and marks that skip checks, such as `[skip ci]`."""
    lines = _plain_lines(message)[:MOST_WORDS].splitlines()
    return "\n".join(_NO_CHECKS.sub("", plain_line(line, MOST_WORDS)).translate(_BRACKETS) for line in lines)


def code(words: str, limit: int = MOST_LINE) -> str:
    """`words` as code within a line."""
    plain = _one_line(words, limit).replace("<!--", "<! --")
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    pad = " " if plain[:1] in ("`", "") or plain[-1:] == "`" else ""
    fence = "`" * (longest + 1)
    return f"{fence}{pad}{plain}{pad}{fence}"


def _plain_lines(words: str) -> str:
    return strip_invisible(words.replace("\r\n", "\n").replace("\r", "\n"))


def _one_line(words: str, limit: int) -> str:
    plain = " ".join(_plain_lines(words).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _until_closed(lines: Iterator[str], fence: str) -> Iterator[str]:
    closes = re.compile(rf"[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    for line in lines:
        if closes.fullmatch(line):
            return
        yield line


def _block(kind: str, content: list[str]) -> list[str]:
    """A block of code that nothing before or in it can open or close."""
    runs = re.findall(r"`{3,}", "\n".join(content))
    fence = "`" * (max((len(run) for run in runs), default=2) + 1)
    return ["", f"{fence}{kind}", *(_acts_not(line.replace("<!--", "<! --")) for line in content), fence, ""]


def _acts_not(line: str) -> str:
    """A line that GitLab does not take for one of its commands (`/close`, `/merge`), which hold in code, too."""
    return _ACTION.sub(r"\1\\\2", line)


def _inline(line: str) -> str:
    """Defuse one line outside of code. Unclosed backquotes are escaped, since a later line could close them."""
    done: list[str] = []
    told: list[str] = []
    at = 0
    while (piece := _PIECES.match(line, at)) is not None:
        at = piece.end()
        if piece["ticks"]:
            end = _closing(line, at, len(piece["ticks"]))
            if end < 0:
                told.append("\\`" * len(piece["ticks"]))
                continue
            done += [_defused("".join(told)), code(line[at : end - len(piece["ticks"])], len(line) + 1)]
            told, at = [], end
        elif piece["escaped"] and piece["escaped"][1] in _UNESCAPED:
            told.append(piece["escaped"][1])
        else:
            told.append(piece[0])
    return _beside([*done, _defused("".join(told))])


def _beside(parts: list[str]) -> str:
    """Join parts. A space keeps backquotes of two parts, or a backslash and a backquote, from acting together."""
    line = ""
    for part in parts:
        apart = part.startswith("`") and (line.endswith("`") or _escapes_next(line))
        line += f" {part}" if apart else part
    return line


def _escapes_next(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _closing(line: str, start: int, length: int) -> int:
    """Where the run of so many backquotes that closes a span ends; -1 where there is none."""
    for run in re.finditer("`+", line[start:]):
        if len(run[0]) == length:
            return start + run.end()
    return -1


def _defused(told: str) -> str:
    parts: list[str] = []
    at = 0
    for found in _REFERENCE.finditer(told):
        parts += [_shown(told[at : found.start()]), code(found[0], len(found[0]))]
        at = found.end()
    return _beside([*parts, _shown(told[at:])])


def _shown(told: str) -> str:
    """Entities, HTML and images as they are written."""
    return _IMAGE.sub(r"!\\[", _TAG.sub("&lt;", _ENTITY.sub("&amp;", told)))
