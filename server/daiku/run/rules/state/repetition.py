"""Finds the loops that a run can get into: repeated calls, results, texts and edits that undo one another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import dumps
from types import MappingProxyType
from typing import Literal, NamedTuple, Never, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.events import Edit, ToolResponse
from daiku.domain.tools import ToolCall
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

KEPT_TURNS = 64
LONGEST_CYCLE = KEPT_TURNS // 4
"""Replies that a cycle may consist of: as many as can be seen to come again three times."""
LONG_ANSWER = 80
"""Characters from which equal results of different calls count as repetition; short ones such as “ok” do not."""
PATIENCE = 4
"""A command that still runs may be looked at this many times as often as anything else."""
LEAST_TOLD = 2
_TOOL_NAME = lazy(r"[^\s,→]+/[^\s,→]+")

LoopKind: TypeAlias = Literal[
    "same_result", "same_answer", "same_failure", "alternating", "same_text", "undone_edits"
]

KINDS: Mapping[LoopKind, str] = MappingProxyType(
    {
        "same_result": "circles.kind.same_result",
        "same_answer": "circles.kind.same_answer",
        "same_failure": "circles.kind.same_failure",
        "alternating": "circles.kind.alternating",
        "same_text": "circles.kind.same_text",
        "undone_edits": "circles.kind.undone_edits",
    }
)
"""What a kind is called."""

# What differs between two runs of the same command although nothing changed.
_NOISE = lazy(
    r"\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b|\b0x[0-9a-f]{6,}\b",
    re.IGNORECASE,
)
_NOTHING: Mapping[tuple[str, ...], Never] = MappingProxyType({})


class Outcome(NamedTuple):
    """A call and what came of it; `call` and `result` are hashes, of use within one process."""

    tool: str
    call: int
    result: int
    ok: bool
    waiting: bool
    carried_out: bool
    answer: int = 0
    """A hash of tool and result where the result is long enough to tell something; else 0."""


class EditRecord(NamedTuple):
    """The last edit of some files: hash of its inverse; `undoing`: edits in a row that undid the previous one."""

    undoes: int
    undoing: int = 0


class RepetitionHistory(NamedTuple):
    """Bounded history of a run for finding repetition.

    `turns`: latest replies with calls; `current`: the present one; `texts`: replies since something new was found;
    `changes`: last edit by files; `latest`: files of the latest edit, until a reply brings none."""

    turns: tuple[tuple[Outcome, ...], ...] = ()
    current: tuple[Outcome, ...] = ()
    texts: tuple[str, ...] = ()
    changes: Mapping[tuple[str, ...], EditRecord] = _NOTHING
    latest: tuple[str, ...] = ()


class Repetition(NamedTuple):
    """A loop: its kind, what goes round, and how often it came again after the first time."""

    kind: LoopKind
    what: str
    repeats: int


def add_result(
    trail: RepetitionHistory, call: ToolCall | None, event: ToolResponse, *, carried_out: bool
) -> RepetitionHistory:
    """Return the history with one more result; `call` as the model requested it, None if unknown."""
    args = dumps(call.args, sort_keys=True, ensure_ascii=False) + (call.malformed or "") if call else event.id
    waiting = bool(event.data and event.data.get("running") is True)
    text = event.result if waiting else _NOISE.sub("#", event.result)
    outcome = Outcome(
        event.tool,
        hash((event.tool, args)),
        hash((event.ok, text)),
        event.ok,
        waiting,
        carried_out,
        hash((event.tool, text)) if event.ok and not waiting and len(text) >= LONG_ANSWER else 0,
    )
    return trail._replace(current=(*trail.current, outcome))


def add_reply(trail: RepetitionHistory, reply: str, *, calls: bool) -> RepetitionHistory:
    """Return the history with one more reply of the model, added before its calls are carried out."""
    said = " ".join(reply.split())
    texts = (*trail.texts, said)[-KEPT_TURNS:] if said or not calls else trail.texts
    return trail._replace(texts=texts, current=(), latest=())


def close_turn(trail: RepetitionHistory) -> RepetitionHistory:
    """Return the history with the current reply closed; for when each of its calls has its result."""
    turn = trail.current
    known = {outcome for earlier in trail.turns for outcome in earlier}
    found_out = any(o.carried_out and o not in known for o in turn)
    return trail._replace(
        turns=(*trail.turns, turn)[-KEPT_TURNS:], current=(), texts=() if found_out else trail.texts
    )


def add_edit(trail: RepetitionHistory, event: Edit) -> RepetitionHistory:
    """Return the history with one more edit; counts edits in a row that undo the previous one."""
    paths = tuple(stat.path for stat in event.files)
    lines = [line for line in event.diff.splitlines() if not line.startswith(("+++", "---"))]
    plus = tuple(line[1:] for line in lines if line.startswith("+"))
    minus = tuple(line[1:] for line in lines if line.startswith("-"))
    if plus == minus:  # no diff to go by
        return trail
    before = trail.changes.get(paths)
    does = hash((minus, plus))
    undoing = before.undoing + 1 if before is not None and before.undoes == does else 0
    others = {key: value for key, value in trail.changes.items() if key != paths}
    while len(others) >= KEPT_TURNS:
        del others[next(iter(others))]
    change = EditRecord(hash((plus, minus)), undoing)
    return trail._replace(changes=MappingProxyType({**others, paths: change}), latest=paths)


def equal_errors(trail: RepetitionHistory) -> int:
    """How many calls in a row, up to the last one, could not be carried out for the same reason."""
    last, count = None, 0
    for outcome in (each for turn in reversed(trail.turns) for each in reversed(turn)):
        failed = (outcome.tool, outcome.result)
        if outcome.ok or outcome.carried_out or (last is not None and failed != last):
            break
        last, count = failed, count + 1
    return count


def repetition(trail: RepetitionHistory) -> Repetition | None:
    """The loop that the run is in now, the most repeated where there are several; None: it gets on."""
    found = [
        each
        for each in (_undone(trail), *_cycles(trail), _same_answers(trail), _text(trail))
        if each is not None
    ]
    return max(found, key=lambda each: each.repeats, default=None)


def _undone(trail: RepetitionHistory) -> Repetition | None:
    change = trail.changes.get(trail.latest)
    if change is None or not change.undoing:
        return None
    return Repetition("undone_edits", ", ".join(trail.latest), change.undoing)


def _cycles(trail: RepetitionHistory) -> list[Repetition]:
    return [each for size in range(1, LONGEST_CYCLE + 1) if (each := _cycle(trail.turns, size)) is not None]


def _cycle(turns: tuple[tuple[Outcome, ...], ...], size: int) -> Repetition | None:
    block = turns[-size:]
    if len(block) < size or not any(block) or (size > 1 and len(set(block)) == 1):
        return None
    repeats, end = 0, len(turns) - size
    while end >= size and turns[end - size : end] == block:
        repeats, end = repeats + 1, end - size
    if all(outcome.waiting for turn in block for outcome in turn):
        repeats //= PATIENCE
    if not repeats:
        return None
    what = " → ".join(", ".join(dict.fromkeys(outcome.tool for outcome in turn)) for turn in block)
    if size > 1:
        return Repetition("alternating", what, repeats)
    went_well = any(outcome.ok for outcome in block[0])
    return Repetition("same_result" if went_well else "same_failure", what, repeats)


def _same_answers(trail: RepetitionHistory) -> Repetition | None:
    """One call a reply, each with other arguments, and every time the same long result."""
    last = trail.turns[-1] if trail.turns else ()
    if len(last) != 1 or not last[0].answer:
        return None
    run: list[Outcome] = []
    for turn in reversed(trail.turns):
        if len(turn) != 1 or turn[0].answer != last[0].answer:
            break
        run.append(turn[0])
    if len({outcome.call for outcome in run}) < 2:  # the same call: that is a loop of its own kind
        return None
    return Repetition("same_answer", last[0].tool, (len(run) - 1) // 2)


def _text(trail: RepetitionHistory) -> Repetition | None:
    if not trail.texts:
        return None
    last = trail.texts[-1]
    repeats = trail.texts.count(last) - 1
    return Repetition("same_text", last if len(last) <= 60 else last[:59] + "…", repeats) if repeats else None


def repetition_note(trail: RepetitionHistory, limit: int) -> str:
    """`describe_repetition` as a note to the model."""
    found = describe_repetition(trail, limit, spelled=wire_name)
    return f"Note: {found}" if found else ""


def describe_repetition(trail: RepetitionHistory, limit: int, spelled: Callable[[str], str] = str) -> Text:
    """Describe the loop while the run may still leave it; empty without one. `limit`: repeats that end the run."""
    found = repetition(trail) if limit else None
    if found is None or not max(1, min(LEAST_TOLD, limit - 1)) <= found.repeats < limit:
        return Text("")
    return text("circles.change_approach", what=_described(found, spelled))


def repetition_failure(trail: RepetitionHistory, limit: int) -> Failure | None:
    """Why the run has to end: the loop came again `limit` times."""
    found = repetition(trail) if limit else None
    if found is None or found.repeats < limit:
        return None
    return Failure(
        kind="limit",
        message=text("circles.ended", kind=text(KINDS[found.kind]), what=_described(found, str)),
        hint=text("circles.ask_otherwise"),
    )


def _described(found: Repetition, spelled: Callable[[str], str]) -> Text:
    what, times = found.what, found.repeats + 1
    if found.kind in ("same_result", "same_answer", "same_failure", "alternating"):
        what = _TOOL_NAME.sub(lambda name: spelled(name[0]), what)
    match found.kind:
        case "same_result":
            return text("circles.same_result", tool=what, count=times)
        case "same_answer":
            return text("circles.same_answer", tool=what)
        case "same_failure":
            return text("circles.same_failure", tool=what, count=times)
        case "alternating":
            return text("circles.alternating", tools=what, count=times)
        case "same_text":
            words = f"“{what}”" if what else text("circles.nothing")
            return text("circles.same_text", what=words, count=times)
        case "undone_edits":
            return text("circles.undone_edits", path=what, count=found.repeats)
