"""A playbook as text in three forms: ACE, JSON, and rules for agents (AGENTS.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import TypeAdapter, ValidationError

from daiku.dataclass import dataclass
from daiku.domain.playbook import Bullet
from daiku.playbook.rules.sections import USUAL_SECTION, normalize_section
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
    """Contents of a text: its bullets in order, with their ids there (empty: none).

    `left_out`: numbers (from 1) of the lines that are not blank and belong to no bullet.
    """

    bullets: tuple[Bullet, ...] = ()
    left_out: tuple[int, ...] = ()


class UnreadableText(ValueError):
    """A text that cannot be parsed. `place` is where; empty if it contains no lessons at all."""

    def __init__(self, place: str = "") -> None:
        super().__init__(place)
        self.place = place


# ---- ACE: `[slug-00001] helpful=X harmful=Y :: content` under `## SECTION`


def format_ace(bullets: Iterable[Bullet]) -> str:
    """Format bullets below the headers of their sections.

    Lines of a content that would be parsed as a header or a bullet, and empty lines at its end, are escaped
    by a backslash.
    """
    parts: list[str] = []
    for section, members in group_by_section(bullets):
        lines = [f"## {section}", *(_format_ace_bullet(each) for each in members)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def read_ace(text: str) -> ReadText:
    """Parse the bullets of a text in ACE's form, whoever wrote it.

    Lines below a bullet belong to it, except empty ones before the next header or bullet. A malformed bullet
    and the lines below it belong to none.
    """
    bullets: list[Bullet] = []
    left_out: list[int] = []
    section, lines = USUAL_SECTION, list[str]()
    head: tuple[str, int, int] | None = None

    def close() -> None:
        if head is not None:
            while len(lines) > 1 and not lines[-1]:
                lines.pop()
            content = "\n".join([lines[0], *map(_unescape, lines[1:])])
            name, helpful, harmful = head
            bullets.append(
                Bullet(
                    id=name,
                    section=section,
                    content=content,
                    helpful=helpful,
                    harmful=harmful,
                    origin="import",
                )
            )

    for number, line in enumerate(split_file_lines(text), 1):
        if (bullet := _BULLET.fullmatch(line)) is not None:
            close()
            head = (bullet[1], int(bullet[2]), int(bullet[3]))
            lines = [bullet[4]]
        elif (header := _HEADER.fullmatch(line)) is not None:
            close()
            head, section = None, clean_section_name(header[1])
        elif _BROKEN.fullmatch(line) is not None:
            close()
            head = None
            left_out.append(number)
        elif head is not None:
            lines.append(line)
        elif line.strip():
            left_out.append(number)
    close()
    return ReadText(tuple(bullets), tuple(left_out))


def is_ace(text: str) -> bool:
    """Return True if a line of the text is a bullet in ACE's form."""
    return any(_BULLET.fullmatch(line) for line in split_file_lines(text))


def _format_ace_bullet(bullet: Bullet) -> str:
    first, *others = bullet.content.split("\n")
    lines = [_escape(line) for line in others]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at]:
            break
        lines[at] = "\\"
    head = f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} :: {first}"
    return "\n".join([head, *lines])


def _escape(line: str) -> str:
    return f"\\{line}" if _TO_ESCAPE.match(line) else line


def _unescape(line: str) -> str:
    return line[1:] if _ESCAPED.match(line) else line


# ---- JSON


def format_json(bullets: Iterable[Bullet]) -> str:
    """Format bullets as a JSON list with all fields."""
    rows = [each.model_dump(mode="json", by_alias=True) for each in bullets]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def read_json(text: str) -> ReadText:
    """Parse the bullets of a JSON list, or of an object with the list as `bullets`. Raises UnreadableText."""
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


# ---- shared


def group_by_section(bullets: Iterable[Bullet]) -> Sequence[tuple[str, list[Bullet]]]:
    """Group bullets by section; sections are in the order of their first bullets."""
    groups: dict[str, list[Bullet]] = {}
    for bullet in bullets:
        groups.setdefault(clean_section_name(bullet.section), []).append(bullet)
    return tuple(groups.items())


def split_file_lines(text: str) -> list[str]:
    r"""Split a text into lines at `\n`, or at `\r\n` if its first line ends with it."""
    text = text.removeprefix("\ufeff")
    if text.split("\n", 1)[0].endswith("\r"):
        text = text.replace("\r\n", "\n")
    return text.split("\n")


def clean_section_name(name: str) -> str:
    """Normalize a section's name for a header: one line, printable; the default one if nothing is left."""
    return normalize_section("".join(char for char in name if char.isprintable() or char.isspace()))


# ---- AGENTS.md: a list below the header of each section, without ids and counters


def format_agents(bullets: Iterable[Bullet]) -> str:
    """Format bullets as a list below the header of each section; further lines of a bullet are indented."""
    parts: list[str] = []
    for section, members in group_by_section(bullets):
        items = [_format_agents_item(each.content) for each in members]
        parts.append("\n".join([f"## {section}", "", *items]) + "\n")
    return "\n".join(parts)


def read_agents(text: str) -> ReadText:
    """Parse the list items of a Markdown file. Paragraphs and code blocks between lists are left out."""
    bullets: list[Bullet] = []
    left_out: list[int] = []
    section, item, fence = USUAL_SECTION, list[str](), ""

    def close() -> None:
        if item:
            while len(item) > 1 and not item[-1]:
                item.pop()
            lines = [item[0], *(line[len(_INDENT) :] if line else "" for line in item[1:])]
            bullets.append(Bullet(id="", section=section, content="\n".join(lines), origin="import"))
            item.clear()

    for number, line in enumerate(split_file_lines(text), 1):
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
            section = clean_section_name(header[1])
        elif item and item[-1] and line.strip() and not _FENCE.match(line):
            item.append(_INDENT + line)  # lazy continuation line of the item
        elif line.strip():
            close()
            left_out.append(number)
            opened = _FENCE.match(line)
            fence = opened[1] if opened is not None else ""
    close()
    return ReadText(tuple(each for each in bullets if each.content.strip()), tuple(left_out))


def _format_agents_item(content: str) -> str:
    first, *others = content.split("\n")
    lines = [f"{_INDENT}{line}" if line else "" for line in others]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at]:
            break
        lines[at] = _INDENT
    return "\n".join([f"- {first}", *lines])
