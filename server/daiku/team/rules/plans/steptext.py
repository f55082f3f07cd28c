"""One step of a plan as a planner writes it: its number, its name, its checks, what it waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daiku.domain.base import Frozen
from daiku.texts.rules.patterns import lazy


class PlannedStep(Frozen):
    """A step as the planner wrote it, with its `number` if any. `depends_on` None: on the step before."""

    number: str = ""
    name: str
    description: str = ""
    acceptance: tuple[str, ...] = ()
    depends_on: tuple[str, ...] | None = None


NUMBER = lazy(r"^\s*\**\s*(?:step|ステップ)\s*#?(\d+(?:\.\d+)*)\s*\**\s*[:：.)]\s*\**\s*", re.IGNORECASE)
_CHECK = lazy(
    r"^[\s*_-]*(?:check|checks|acceptance|verify|verification|検証|確認)[*_\s]*"
    r"(?P<time>[(（]\s*\d+\s*[^\W\d]+\s*[)）])?[*_\s]*[:：][*_\s]*(?P<check>.*)$",
    re.IGNORECASE,
)
_AFTER = lazy(r"^[\s*_-]*(?:depends on|after|依存)[*_\s]*[:：][*_\s]*(.*)$", re.IGNORECASE)
_NO_STEP = lazy(r"\W*(?:none|nothing|no|なし|-)?\W*", re.IGNORECASE)
FENCE = lazy(r"^\s*(?P<mark>`{3,}|~{3,})")
_LISTED = lazy(r"^\s*(?:[-*+]|\d+[.)])\s+(?!\[)(?P<check>.+)$")
_ONE_COMMAND = lazy(r"^\s*(?:for|while|until|if|case|function)\b|[{(]\s*$|<<", re.MULTILINE)


def planned_step(text: str) -> PlannedStep:
    """Parse a step: the first line is its name. The command of an empty `Check:` is below it."""
    first, *rest = text.strip().splitlines() or [""]
    number = NUMBER.match(first)
    about: list[str] = []
    checks: list[str] = []
    after: tuple[str, ...] | None = None
    while rest:
        line, rest = rest[0], rest[1:]
        if found := _CHECK.match(line):
            time, check = f"{found['time']} " if found["time"] else "", _unquoted(found["check"])
            given = [check] if check else []
            if not check:
                given, rest = _checks_below(rest)
            checks += [time + each for each in given if not _NO_STEP.fullmatch(each)]
        elif found := _AFTER.match(line):
            after = () if _NO_STEP.fullmatch(found[1]) else tuple(_step_names(found[1]))
        else:
            about.append(line)
    name = first if number is None else first[number.end() :]
    return PlannedStep(
        number=number[1] if number else "",
        name=name.strip("* "),
        description="\n".join(about),
        acceptance=tuple(checks),
        depends_on=after,
    )


def open_check(step: str) -> bool:
    """Whether the last line of a step is a `Check:` whose command is still to come."""
    last = _CHECK.match(step.rpartition("\n")[2])
    return last is not None and not last["check"].strip()


def _checks_below(lines: list[str]) -> tuple[list[str], list[str]]:
    """The checks that stand below an empty `Check:`, and the lines after them."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    if not lines:
        return [], []
    if fence := FENCE.match(lines[0]):
        closes = (n for n, line in enumerate(lines[1:], 1) if line.strip().startswith(fence["mark"]))
        end = next(closes, len(lines))
        return _commands(lines[1:end]), lines[end + 1 :]
    found: list[str] = []
    while lines and not _starts(lines[0]) and (item := _LISTED.match(lines[0])):
        found.append(_unquoted(item["check"]))
        lines = lines[1:]
    if not found and not _starts(lines[0]):
        found, lines = [_unquoted(lines[0])], lines[1:]
    return found, lines


def _starts(line: str) -> bool:
    return bool(_CHECK.match(line) or _AFTER.match(line))


def _commands(lines: list[str]) -> list[str]:
    """The commands of a fence, one a line; several lines that are one command stay together."""
    text = "\n".join(re.sub(r"^\s*\$\s+", "", line).rstrip() for line in lines).strip("\n")
    if _ONE_COMMAND.search(text):
        return [text]
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    joined = re.sub(r"(&&|\|\|?)\s*\n\s*", r"\1 ", joined)
    return [
        line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]


def _unquoted(check: str) -> str:
    """The command without the marks of inline code around it."""
    check = check.strip().strip("*").strip()
    inner = re.fullmatch(r"(`+)\s?(.*?)\s?\1\.?", check)
    return inner[2] if inner else check


def _step_names(text: str) -> Iterator[str]:
    """What `Depends on:` names: numbers, with or without the word before them."""
    for part in re.split(r"[,;、]|\band\b", text):
        name = re.sub(r"^(?:steps?|ステップ)\s*#?(?=\d)", "", part.strip(" .`"), flags=re.IGNORECASE)
        if name:
            yield name
