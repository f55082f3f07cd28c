"""The pull or merge request of a work item: its title and body, with the evidence of the work."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.core.protected.paths import needs_review
from daiku.core.work.comments import bounded
from daiku.core.work.harmless import code, harmless, harmless_line, plain_line
from daiku.dataclass import dataclass
from daiku.domain.work.handovers import CommandOutcome
from daiku.domain.work.patches import FileStat
from daiku.texts.text import NO_TEXT, Text, joined, render, text

MOST_TITLE = 200
MOST_COMMANDS = 30
MOST_FILES = 100


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a request tells. `number`: the issue that it is for; `closes`: merging it closes that issue. `words` are the
    model's, the rest is on record. `leftovers` are unfinished lines that the work left, as `path: line`."""

    number: int
    asked_by: str
    words: str = ""
    closes: bool = True
    commands: tuple[CommandOutcome, ...] = ()
    files: tuple[FileStat, ...] = ()
    leftovers: tuple[str, ...] = ()
    unverified: tuple[Text, ...] = ()
    """Why the record does not support that the work is done."""


def request_title(title: str, number: int) -> str:
    """The issue's title, harmless where no Markdown is."""
    return plain_line(title, MOST_TITLE) or f"Issue {number}"


def request_body(facts: RequestFacts, language: str) -> str:
    """Who asked, which issue, what was done, and what shows it: commands with exit codes, files changed."""
    parts: list[str] = [
        Text(f"Closes #{facts.number}") if facts.closes else text("request.part_of", number=facts.number),
        text("request.asked_by", name=code(facts.asked_by)),
        harmless(facts.words),
        *_section(text("request.commands"), _commands(facts.commands), text("request.no_commands")),
        *_section(text("request.files"), _files(facts.files), text("request.no_files")),
        *_section(text("request.runs_by_itself"), _implicit(facts.files), Text("")),
        *_section(
            text("request.unverified"),
            [text("request.reason", why=harmless_line(render(why, language))) for why in facts.unverified],
            NO_TEXT,
        ),
        *_section(
            text("request.leftovers"), [Text(f"- {code(each)}") for each in facts.leftovers[:50]], Text("")
        ),
        text("request.check_it"),
    ]
    return bounded(render(joined("paragraphs", parts), language))


def _implicit(files: Sequence[FileStat]) -> list[Text]:
    """Return the changed files that tools run or obey by themselves: a reviewer looks at these first."""
    return [Text(f"- {code(each.path)}") for each in files if needs_review(each.path)][:MOST_FILES]


def _section(head: Text, lines: Sequence[Text], none: Text) -> list[Text]:
    if not lines:
        return [head, none] if none else []
    return [head, joined("lines", lines)]


def _commands(commands: Sequence[CommandOutcome]) -> list[Text]:
    """The last outcome of each command, the latest commands first to be kept."""
    last: dict[str, CommandOutcome] = {}
    for each in commands:
        last.pop(each.command, None)
        last[each.command] = each
    shown = list(last.values())[-MOST_COMMANDS:]
    return [
        text(
            "request.command",
            mark="❌" if each.exit_code else "✅",
            command=code(each.command),
            code=each.exit_code,
        )
        for each in shown
    ]


def _files(files: Sequence[FileStat]) -> list[Text]:
    lines = [Text(f"- {code(each.path)} (+{each.added} −{each.removed})") for each in files[:MOST_FILES]]
    more = len(files) - MOST_FILES
    return [*lines, text("request.more_files", count=more)] if more > 0 else lines
