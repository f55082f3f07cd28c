"""Parse one step of a plan as a planner writes it: number, name, checks, and dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daiku.domain.base import Frozen
from daiku.texts.rules.patterns import lazy


class PlannedStep(Frozen):
    """A planner's step, with its `number` if any. `depends_on` None: it depends on the step before."""

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


def parse_planned_step(text: str) -> PlannedStep:
    """Parse a step: its first line is the name. The command of an empty `Check:` is on the lines below."""
    first, *rest = text.strip().splitlines() or [""]
    number = NUMBER.match(first)
    description: list[str] = []
    checks: list[str] = []
    after: tuple[str, ...] | None = None
    while rest:
        line, rest = rest[0], rest[1:]
        if match := _CHECK.match(line):
            time, check = f"{match['time']} " if match["time"] else "", _unquote(match["check"])
            commands = [check] if check else []
            if not check:
                commands, rest = _parse_checks_below(rest)
            checks += [time + command for command in commands if not _NO_STEP.fullmatch(command)]
        elif match := _AFTER.match(line):
            after = () if _NO_STEP.fullmatch(match[1]) else tuple(_parse_step_names(match[1]))
        else:
            description.append(line)
    name = first if number is None else first[number.end() :]
    return PlannedStep(
        number=number[1] if number else "",
        name=name.strip("* "),
        description="\n".join(description),
        acceptance=tuple(checks),
        depends_on=after,
    )


def has_open_check(step: str) -> bool:
    """Return True if the last line of a step is a `Check:` whose command follows."""
    last = _CHECK.match(step.rpartition("\n")[2])
    return last is not None and not last["check"].strip()


def _parse_checks_below(lines: list[str]) -> tuple[list[str], list[str]]:
    """Parse the checks below an empty `Check:`; return them and the lines after them."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    if not lines:
        return [], []
    if fence := FENCE.match(lines[0]):
        closes = (n for n, line in enumerate(lines[1:], 1) if line.strip().startswith(fence["mark"]))
        end = next(closes, len(lines))
        return _parse_commands(lines[1:end]), lines[end + 1 :]
    checks: list[str] = []
    while lines and not _is_field_start(lines[0]) and (item := _LISTED.match(lines[0])):
        checks.append(_unquote(item["check"]))
        lines = lines[1:]
    if not checks and not _is_field_start(lines[0]):
        checks, lines = [_unquote(lines[0])], lines[1:]
    return checks, lines


def _is_field_start(line: str) -> bool:
    return bool(_CHECK.match(line) or _AFTER.match(line))


def _parse_commands(lines: list[str]) -> list[str]:
    """Parse the commands in a fence, one per line; a command over several lines stays together."""
    text = "\n".join(re.sub(r"^\s*\$\s+", "", line).rstrip() for line in lines).strip("\n")
    if _ONE_COMMAND.search(text):
        return [text]
    joined_text = re.sub(r"\s*\\\n\s*", " ", text)
    joined_text = re.sub(r"(&&|\|\|?)\s*\n\s*", r"\1 ", joined_text)
    return [
        line.strip()
        for line in joined_text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _unquote(check: str) -> str:
    """Return the command without inline code marks."""
    check = check.strip().strip("*").strip()
    inner = re.fullmatch(r"(`+)\s?(.*?)\s?\1\.?", check)
    return inner[2] if inner else check


def _parse_step_names(text: str) -> Iterator[str]:
    """Yield the step names of `Depends on:`: numbers, with or without the word before them."""
    for part in re.split(r"[,;、]|\band\b", text):
        name = re.sub(r"^(?:steps?|ステップ)\s*#?(?=\d)", "", part.strip(" .`"), flags=re.IGNORECASE)
        if name:
            yield name
