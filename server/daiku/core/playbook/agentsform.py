"""A playbook as a file of rules for agents (AGENTS.md): a list below the header of each section; contents are kept."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.core.playbook.sections import USUAL_SECTION
from daiku.core.playbook.textform import ReadText, by_section, lines_of, section_name
from daiku.core.text.patterns import lazy
from daiku.domain.playbook import Bullet

_ITEM = lazy(r"(?:[-*+]|[0-9]{1,9}[.)])(?: (.*))?")
_HEADER = lazy(r"#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = lazy(r"(`{3,}|~{3,})")
_INDENT = "  "


def agents_text(bullets: Iterable[Bullet]) -> str:
    """One item a bullet; its further lines are indented, so that nothing in them ends it."""
    parts: list[str] = []
    for section, members in by_section(bullets):
        items = [_item(each.content) for each in members]
        parts.append("\n".join([f"## {section}", "", *items]) + "\n")
    return "\n".join(parts)


def read_agents(text: str) -> ReadText:
    """The items of a Markdown file's lists. What is no item, such as a paragraph or a block of code between the lists, is
    left out."""
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
        elif (header := _HEADER.fullmatch(line)) is not None:
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


def _item(content: str) -> str:
    first, *others = content.split("\n")
    lines = [f"{_INDENT}{line}" if line else "" for line in others]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at]:
            break
        lines[at] = _INDENT
    return "\n".join([f"- {first}", *lines])
