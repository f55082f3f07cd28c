"""Edits as models drift in them, made from real texts with a seed: what each should lead to is known beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from random import Random
from typing import Literal

from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import build_patch, parse_patch

FILE = "src/file"
SEARCH_CHARACTERS, SEARCH_LINES = 8000, 10
PATCH_CHARACTERS, PATCH_LINES = 9000, 12
_HEAD = re.compile(r"(?:def|class|function|export|async|interface)\b|const \w+ = \(")

Outcome = Literal["right", "refused", "wrong"]


@dataclass(frozen=True)
class Case:
    """An edit of `text`, the drift that it has, and the text that it means; None where it has to be refused."""

    drift: str
    text: str
    edit: str
    wanted: str | None


def outcome(case: Case) -> Outcome:
    """What comes of the case when its edit is carried out as a patch text of a reply."""
    intents = parse_patch(case.edit)
    patch = intents if isinstance(intents, Refusal) else build_patch(intents, {FILE: case.text})
    if isinstance(patch, Refusal):
        return "refused"
    new = patch.files[0].new if patch.files else case.text
    return "right" if new == case.wanted else "wrong"


def search_cases(texts: Sequence[str], random: Random) -> Iterator[Case]:
    """SEARCH/REPLACE blocks for ever, each of a text drawn anew."""
    usable = list(_usable(texts, SEARCH_CHARACTERS, SEARCH_LINES))
    while True:
        if case := _search_case(random.choice(usable), random):
            yield case


def patch_cases(texts: Sequence[str], random: Random) -> Iterator[Case]:
    """Apply-patches for ever, each of a text drawn anew."""
    usable = list(_usable(texts, PATCH_CHARACTERS, PATCH_LINES))
    while True:
        if case := _patch_case(random.choice(usable), random):
            yield case


def _usable(texts: Iterable[str], characters: int, lines: int) -> Iterator[str]:
    for text in texts:
        start = text if len(text) <= characters else text[:characters].rstrip(" \t")
        if "\r" not in start and "=====" not in start and "<<<<" not in start and start.count("\n") >= lines:
            yield start


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _search_case(text: str, random: Random) -> Case | None:
    lines = _lines(text)
    count = random.choice((1, 1, 2, 3, 5, 8))
    start = random.randrange(len(lines) - count + 1)
    old = lines[start : start + count]
    if not any(line.strip() for line in old):
        return None
    new = _changed(old, random)
    name = random.choice(tuple(_SEARCH_DRIFTS))
    drifted = _SEARCH_DRIFTS[name](old, new, random)
    if drifted is None or drifted[0] == drifted[1]:
        return None
    search, replace = ("".join(f"{line}\n" for line in part) for part in drifted)
    edit = f"{FILE}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"
    end = "\n" if text.endswith("\n") else ""
    wanted = "\n".join([*lines[:start], *new, *lines[start + count :]]) + end
    return Case(name, text, edit, None if name == "mid" else wanted)


def _changed(old: Sequence[str], random: Random) -> list[str]:
    new, at = list(old), random.randrange(len(old))
    match random.choice(("append", "insert", "delete", "tail")):
        case "append":
            new[at] = f"{old[at]} # z" if old[at].strip() else "zz"
        case "insert":
            new.insert(at + 1, f"{_indent(old[at])}added()")
        case "delete" if len(old) > 1:
            del new[at]
        case _:
            new.append(f"{_indent(old[-1])}tail()")
    return new


Parts = tuple[list[str], list[str]]


def _dedent(old: Sequence[str], new: Sequence[str], _: Random) -> Parts:
    widths = [len(_indent(line)) for line in (*old, *new) if line.strip()]
    return [line[min(widths) :] for line in old], [line[min(widths) :] for line in new]


def _trail(old: Sequence[str], new: Sequence[str], random: Random) -> Parts:
    return [f"{line}  " if random.random() < 0.5 else line for line in old], list(new)


def _collapse(old: Sequence[str], new: Sequence[str], _: Random) -> Parts:
    return [re.sub(r"(?<=\S) +", " ", line) for line in old], [
        re.sub(r"(?<=\S) +", " ", line) for line in new
    ]


def _tabs(old: Sequence[str], new: Sequence[str], _: Random) -> Parts:
    return [line.replace("    ", "\t") for line in old], [line.replace("    ", "\t") for line in new]


def _mid(old: Sequence[str], new: Sequence[str], random: Random) -> Parts | None:
    if len(old[0].strip()) < 6 or not new:
        return None
    signs = random.randint(1, 3)
    return [old[0].lstrip()[signs:], *old[1:]], [new[0].lstrip()[signs:], *new[1:]]


_SEARCH_DRIFTS: dict[str, Callable[[Sequence[str], Sequence[str], Random], Parts | None]] = {
    "none": lambda old, new, _: (list(old), list(new)),
    "dedent": _dedent,
    "trail": _trail,
    "collapse": _collapse,
    "tabs": _tabs,
    "mid": _mid,
}


def _patch_case(text: str, random: Random) -> Case | None:
    lines = _lines(text)
    if random.random() < 0.35:
        at, count = random.randrange(3, len(lines)), random.randint(3, 10)
        lines = [*lines[:at], *lines[max(0, at - count) : at], *lines[at:]]
    new = _edited(lines, random)
    if new == lines:
        return None
    groups = list(_groups(lines, new, random.choice((1, 2, 3))))
    hunks = [_hunk(lines, new, group, random) for group in groups]
    name = random.choice(tuple(_PATCH_DRIFTS))
    drifted = [[hunk[0], *_PATCH_DRIFTS[name](hunk[1:], random)] for hunk in hunks]
    if len(drifted) == 1 and all(line.startswith("+") for line in drifted[0][1:]):
        return None  # nothing but added lines means the end of the file
    if any(_means_another(lines, *each) for each in zip(groups, hunks, drifted, strict=True)):
        return None  # without the line that told places apart it says another one as much as the one that is meant
    body = "".join(f"{line}\n" for hunk in drifted for line in hunk)
    edit = f"*** Begin Patch\n*** Update File: {FILE}\n{body}*** End Patch\n"
    end = "\n" if text.endswith("\n") else ""
    return Case(name.rstrip("2"), "\n".join(lines) + end, edit, "\n".join(new) + end)


def _edited(lines: Sequence[str], random: Random) -> list[str]:
    new = list(lines)
    for number in range(random.randint(1, 3)):
        at = random.randrange(len(new))
        for line in range(at, at + random.randint(1, 3)):
            if line >= len(new):
                break
            match random.choice(("insert", "delete", "append")):
                case "insert":
                    new.insert(line, f"{_indent(new[line])}added_{number}()")
                case "delete":
                    del new[line]
                case _:
                    new[line] += " # z"
    return new


Group = list[tuple[str, int, int, int, int]]


def _groups(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[Group]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        yield [(tag, i, j, k, m) for tag, i, j, k, m in group]


def _hunk(old: Sequence[str], new: Sequence[str], group: Group, random: Random) -> list[str]:
    start, end = group[0][1], group[-1][2]
    head = next((at for at in reversed(range(start)) if _HEAD.match(old[at].strip())), None)
    anchored = random.random() < 0.6 and head is not None and not _stands_in_block(old, head, start, end)
    body = [f"@@ {old[head].strip()}" if anchored and head is not None else "@@"]
    for tag, i, j, k, m in group:
        if tag == "equal":
            body += (f" {line}" for line in old[i:j])
        else:
            body += (f"-{line}" for line in old[i:j])
            body += (f"+{line}" for line in new[k:m])
    return body


def _stands_in_block(old: Sequence[str], head: int, start: int, end: int) -> bool:
    """Whether the block below the line `head` has the same lines as the passage, and ends above it: who names that
    line means the block's."""
    depth = len(_indent(old[head]))
    inside = takewhile(
        lambda line: not line.strip() or len(_indent(line)) > depth or line.strip()[0] in "})]{",
        old[head + 1 : start],
    )
    block, passage = [old[head], *inside], list(old[start:end])
    if head + len(block) == start:
        return False
    return any(block[at : at + len(passage)] == passage for at in range(len(block)))


def _nothing(hunk: Sequence[str], _: Random) -> list[str]:
    return list(hunk)


def _trail_patch(hunk: Sequence[str], random: Random) -> list[str]:
    return [f"{line}  " if line[0] in " -" and random.random() < 0.4 else line for line in hunk]


def _drop_blank(hunk: Sequence[str], _: Random) -> list[str]:
    return ["" if line == " " else line for line in hunk]


def _dedent_patch(hunk: Sequence[str], _: Random) -> list[str]:
    return [line[0] + line[1:].removeprefix("    ") for line in hunk]


def _forgotten_blank(hunk: Sequence[str], random: Random) -> list[str]:
    return [line[1:] if line.startswith("    ") and random.random() < 0.5 else line for line in hunk]


def _smart(hunk: Sequence[str], _: Random) -> list[str]:
    return [line.replace("'", "’") if line[0] == " " else line for line in hunk]


def _missing_context(hunk: Sequence[str], random: Random) -> list[str]:
    context = [index for index, line in enumerate(hunk) if line[0] == " " and not _is_one_of_two(hunk, index)]
    left_out = random.choice(context) if context else -1
    return [line for index, line in enumerate(hunk) if index != left_out]


def _is_one_of_two(hunk: Sequence[str], index: int) -> bool:
    """Whether a line is the same as the one before or after it in the file: which of them is left out, nobody sees."""
    old = [at for at, line in enumerate(hunk) if line[0] in " -"]
    number = old.index(index)
    beside = (*old[max(0, number - 1) : number], *old[number + 1 : number + 2])
    return any(hunk[at][1:] == hunk[index][1:] for at in beside)


def _means_another(lines: Sequence[str], group: Group, hunk: Sequence[str], drifted: Sequence[str]) -> bool:
    """Whether what the drifted hunk finds, its context and what it takes away, stands word for word in another place:
    in that one alone, or in both where the hunk itself stands in one."""
    places, start = _places(lines, drifted), group[0][1]
    if len(places) == 1:
        return places[0] not in (start, start + 1)  # the first line may be the one that is left out
    return len(places) > 1 and len(_places(lines, hunk)) == 1


def _places(lines: Sequence[str], hunk: Sequence[str]) -> list[int]:
    """Where what a hunk finds stands word for word."""
    old = [line[1:] for line in hunk[1:] if line[:1] in (" ", "-")]
    return [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]


_PATCH_DRIFTS: dict[str, Callable[[Sequence[str], Random], list[str]]] = {
    "none": _nothing,
    "none2": _nothing,
    "trail": _trail_patch,
    "dropblank": _drop_blank,
    "dedent": _dedent_patch,
    "nospacectx": _forgotten_blank,
    "smart": _smart,
    "missingctx": _missing_context,
}
