"""A playbook as text in three forms: ACE, JSON, and rules for agents (AGENTS.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import TypeAdapter, ValidationError

from daiku.dataclass import dataclass
from daiku.domain.playbook import Bullet
from daiku.playbook.rules.sections import USUAL_SECTION, section_of
from daiku.texts.rules.patterns import lazy

_BULLET = lazy(r"\[([^\]\s]+)\][ \t]*helpful=([0-9]{1,9})[ \t]+harmful=([0-9]{1,9})[ \t]*:: ?(.*)")
_BROKEN = lazy(r"\[[^\]\s]+\][ \t]*helpful=.*")
_HEADER = lazy(r"##(?!#)[ \t]*(.*)")
_ESCAPED = lazy(r"\\+(?:##(?!#)|\[[^\]\s]+\][ \t]*helpful=|$)")
_TO_ESCAPE = lazy(r"\\*(?:##(?!#)|\[[^\]\s]+\][ \t]*helpful=)|\\+$")
_ITEM = lazy(r"(?:[-*+]|[0-9]{1,9}[.)])(?: (.*))?")
_AGENTS_HEADER = lazy(r"#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = lazy(r"(`{3,}|~{3,})")
_INDENT = "  "
_BULLETS = TypeAdapter(tuple[Bullet, ...])


@dataclass(frozen=True, slots=True)
class ReadText:
    """What a text holds: its bullets in order, with the ids that they have there (empty: none), and the numbers of
    the lines (from 1) that are part of none and say something."""

    bullets: tuple[Bullet, ...] = ()
    left_out: tuple[int, ...] = ()


class UnreadableText(ValueError):
    """A text that is not what it looks like; `place` says where it breaks off, empty: it holds no lessons at all."""

    def __init__(self, place: str = "") -> None:
        super().__init__(place)
        self.place = place


# ---- ACE: `[slug-00001] helpful=X harmful=Y :: content` under `## SECTION`


def ace_text(bullets: Iterable[Bullet]) -> str:
    """The bullets below the headers of their sections. A line of a content that would be read as something else begins
    with a backslash more: what looks like a header or a bullet, and an empty line at the end of a content."""
    parts: list[str] = []
    for section, members in by_section(bullets):
        lines = [f"## {section}", *(_ace_bullet(each) for each in members)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def read_ace(text: str) -> ReadText:
    """The bullets of ACE's text, whoever wrote it. Lines below a bullet belong to it; empty ones before the next header
    or bullet belong to nothing, and so does a line that begins like a bullet and is none, with those below it."""
    found: list[Bullet] = []
    left_out: list[int] = []
    section, lines = USUAL_SECTION, list[str]()
    head: tuple[str, int, int] | None = None

    def close() -> None:
        if head is not None:
            while len(lines) > 1 and not lines[-1]:
                lines.pop()
            content = "\n".join([lines[0], *map(_unescaped, lines[1:])])
            name, helpful, harmful = head
            found.append(
                Bullet(
                    id=name,
                    section=section,
                    content=content,
                    helpful=helpful,
                    harmful=harmful,
                    origin="import",
                )
            )

    for number, line in enumerate(lines_of(text), 1):
        if (bullet := _BULLET.fullmatch(line)) is not None:
            close()
            head = (bullet[1], int(bullet[2]), int(bullet[3]))
            lines = [bullet[4]]
        elif (header := _HEADER.fullmatch(line)) is not None:
            close()
            head, section = None, section_name(header[1])
        elif _BROKEN.fullmatch(line) is not None:
            close()
            head = None
            left_out.append(number)
        elif head is not None:
            lines.append(line)
        elif line.strip():
            left_out.append(number)
    close()
    return ReadText(tuple(found), tuple(left_out))


def is_ace(text: str) -> bool:
    """Whether a line of the text is a bullet of ACE's."""
    return any(_BULLET.fullmatch(line) for line in lines_of(text))


def _ace_bullet(bullet: Bullet) -> str:
    first, *others = bullet.content.split("\n")
    lines = [_escaped(line) for line in others]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at]:
            break
        lines[at] = "\\"
    head = f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} :: {first}"
    return "\n".join([head, *lines])


def _escaped(line: str) -> str:
    return f"\\{line}" if _TO_ESCAPE.match(line) else line


def _unescaped(line: str) -> str:
    return line[1:] if _ESCAPED.match(line) else line


# ---- JSON: the bullets as everywhere else


def json_text(bullets: Iterable[Bullet]) -> str:
    """The bullets as one JSON list, with everything that is known of each."""
    rows = [each.model_dump(mode="json", by_alias=True) for each in bullets]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def read_json(text: str) -> ReadText:
    """The bullets of a JSON list, or of an object that holds it as `bullets`. Raises UnreadableText."""
    try:
        value: object = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as wrong:
        raise UnreadableText(str(wrong)[:200]) from None
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("bullets")
    if not isinstance(value, list):
        raise UnreadableText
    try:
        return ReadText(_BULLETS.validate_python(value))
    except ValidationError as wrong:
        first = wrong.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableText(f"{place}: {first['msg']}" if place else first["msg"]) from None


# ---- what the forms share


def by_section(bullets: Iterable[Bullet]) -> Sequence[tuple[str, list[Bullet]]]:
    """The bullets by section, sections in the order in which they are first met."""
    found: dict[str, list[Bullet]] = {}
    for bullet in bullets:
        found.setdefault(section_name(bullet.section), []).append(bullet)
    return tuple(found.items())


def lines_of(text: str) -> list[str]:
    """The lines of a file; only `\\n` ends one, and `\\r\\n` where its first line ends so."""
    text = text.removeprefix("\ufeff")
    if text.split("\n", 1)[0].endswith("\r"):
        text = text.replace("\r\n", "\n")
    return text.split("\n")


def section_name(said: str) -> str:
    """A section's name as a header can hold it: on one line, without what cannot be seen; the usual one where nothing
    is left."""
    return section_of("".join(char for char in said if char.isprintable() or char.isspace()))


# ---- AGENTS.md: a list below the header of each section; contents are kept, ids and counters are not


def agents_text(bullets: Iterable[Bullet]) -> str:
    """Write a list below the header of each section. Further lines of a lesson are indented, so that nothing in them ends it."""
    parts: list[str] = []
    for section, members in by_section(bullets):
        items = [_agents_item(each.content) for each in members]
        parts.append("\n".join([f"## {section}", "", *items]) + "\n")
    return "\n".join(parts)


def read_agents(text: str) -> ReadText:
    """Read the list items of a Markdown file. Paragraphs and blocks of code between the lists are left out."""
    found: list[Bullet] = []
    left_out: list[int] = []
    section, item, fence = USUAL_SECTION, list[str](), ""

    def close() -> None:
        if item:
            while len(item) > 1 and not item[-1]:
                item.pop()
            lines = [item[0], *(line[len(_INDENT) :] if line else "" for line in item[1:])]
            found.append(Bullet(id="", section=section, content="\n".join(lines), origin="import"))
            item.clear()

    for number, line in enumerate(lines_of(text), 1):
        if fence:
            left_out.append(number)
            fence = "" if line.startswith(fence) else fence
        elif item and (not line or line.startswith((_INDENT, "\t"))):
            item.append(_INDENT + line[1:] if line.startswith("\t") else line)
        elif (match := _ITEM.fullmatch(line)) is not None:
            close()
            item.append(match[1] or "")
        elif (header := _AGENTS_HEADER.fullmatch(line)) is not None:
            close()
            section = section_name(header[1])
        elif item and item[-1] and line.strip() and not _FENCE.match(line):
            item.append(_INDENT + line)  # a line that goes on with the item, as Markdown has it
        elif line.strip():
            close()
            left_out.append(number)
            opened = _FENCE.match(line)
            fence = opened[1] if opened is not None else ""
    close()
    return ReadText(tuple(each for each in found if each.content.strip()), tuple(left_out))


def _agents_item(content: str) -> str:
    first, *others = content.split("\n")
    lines = [f"{_INDENT}{line}" if line else "" for line in others]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at]:
            break
        lines[at] = _INDENT
    return "\n".join([f"- {first}", *lines])
