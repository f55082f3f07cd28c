"""Detection of loops in a run: repeated calls, results, texts, and edits that undo each other."""

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
"""Replies that are kept for the detection."""
LONGEST_CYCLE = KEPT_TURNS // 4
"""Replies of a cycle, at most, so that three repetitions are visible."""
LONG_ANSWER = 80
"""Characters above which equal results of different calls count as find_repetition; short ones such as “ok” do
not."""
PATIENCE = 4
"""Factor by which a running command may be polled more often than other calls repeat."""
LEAST_TOLD = 2
"""Repetitions before the model is warned, at most."""
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
"""Text ids of the kinds."""

# Durations, times, and addresses, which differ between equal results of a command.
_NOISE = lazy(
    r"\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b|\b0x[0-9a-f]{6,}\b",
    re.IGNORECASE,
)
_NOTHING: Mapping[tuple[str, ...], Never] = MappingProxyType({})


class CallOutcome(NamedTuple):
    """A call and its result; `call` and `result` are hashes, valid within one process."""

    tool: str
    call: int
    result: int
    ok: bool
    waiting: bool
    carried_out: bool
    answer: int = 0
    """Hash of tool and result if the result is long enough; else 0."""


class EditRecord(NamedTuple):
    """Last edit of some files: hash of its inverse. `undoing`: consecutive edits that undid the previous one."""

    undoes: int
    undoing: int = 0


class RepetitionHistory(NamedTuple):
    """Bounded history of a run for finding find_repetition.

    `turns`: latest replies with calls. `current`: the present reply. `texts`: replies since the last new
    result. `changes`: last edit by files. `latest`: files of the latest edit, until a reply without edits.
    """

    turns: tuple[tuple[CallOutcome, ...], ...] = ()
    current: tuple[CallOutcome, ...] = ()
    texts: tuple[str, ...] = ()
    changes: Mapping[tuple[str, ...], EditRecord] = _NOTHING
    latest: tuple[str, ...] = ()


class Repetition(NamedTuple):
    """A loop: its kind, what repeats, and the number of repetitions after the first time."""

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
    outcome = CallOutcome(
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
    """Return the history with one more reply of the model, before its calls run."""
    words = " ".join(reply.split())
    texts = (*trail.texts, words)[-KEPT_TURNS:] if words or not calls else trail.texts
    return trail._replace(texts=texts, current=(), latest=())


def close_turn(trail: RepetitionHistory) -> RepetitionHistory:
    """Return the history with the current reply closed, once each of its calls has a result."""
    turn = trail.current
    known_outcomes = {outcome for earlier in trail.turns for outcome in earlier}
    has_new_result = any(o.carried_out and o not in known_outcomes for o in turn)
    return trail._replace(
        turns=(*trail.turns, turn)[-KEPT_TURNS:], current=(), texts=() if has_new_result else trail.texts
    )


def add_edit(trail: RepetitionHistory, event: Edit) -> RepetitionHistory:
    """Return the history with one more edit; counts edits in a row that undo the previous one."""
    paths = tuple(stat.path for stat in event.files)
    lines = [line for line in event.diff.splitlines() if not line.startswith(("+++", "---"))]
    plus = tuple(line[1:] for line in lines if line.startswith("+"))
    minus = tuple(line[1:] for line in lines if line.startswith("-"))
    if plus == minus:  # no diff to go by
        return trail
    previous = trail.changes.get(paths)
    edit_hash = hash((minus, plus))
    undoing = previous.undoing + 1 if previous is not None and previous.undoes == edit_hash else 0
    others = {key: value for key, value in trail.changes.items() if key != paths}
    while len(others) >= KEPT_TURNS:
        del others[next(iter(others))]
    change = EditRecord(hash((plus, minus)), undoing)
    return trail._replace(changes=MappingProxyType({**others, paths: change}), latest=paths)


def count_equal_errors(trail: RepetitionHistory) -> int:
    """Return the number of consecutive last calls that could not run for the same reason."""
    previous, count = None, 0
    for outcome in (each for turn in reversed(trail.turns) for each in reversed(turn)):
        failure = (outcome.tool, outcome.result)
        if outcome.ok or outcome.carried_out or (previous is not None and failure != previous):
            break
        previous, count = failure, count + 1
    return count


def find_repetition(trail: RepetitionHistory) -> Repetition | None:
    """Return the current loop, the most repeated if there are several, or None."""
    loops = [
        each
        for each in (
            _find_undone_edits(trail),
            *_find_cycles(trail),
            _find_same_answers(trail),
            _find_same_text(trail),
        )
        if each is not None
    ]
    return max(loops, key=lambda each: each.repeats, default=None)


def _find_undone_edits(trail: RepetitionHistory) -> Repetition | None:
    change = trail.changes.get(trail.latest)
    if change is None or not change.undoing:
        return None
    return Repetition("undone_edits", ", ".join(trail.latest), change.undoing)


def _find_cycles(trail: RepetitionHistory) -> list[Repetition]:
    return [
        each for size in range(1, LONGEST_CYCLE + 1) if (each := _find_cycle(trail.turns, size)) is not None
    ]


def _find_cycle(turns: tuple[tuple[CallOutcome, ...], ...], size: int) -> Repetition | None:
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
    description = " → ".join(", ".join(dict.fromkeys(outcome.tool for outcome in turn)) for turn in block)
    if size > 1:
        return Repetition("alternating", description, repeats)
    has_success = any(outcome.ok for outcome in block[0])
    return Repetition("same_result" if has_success else "same_failure", description, repeats)


def _find_same_answers(trail: RepetitionHistory) -> Repetition | None:
    """Return the loop if replies with one call each and varying arguments get the same long result."""
    last = trail.turns[-1] if trail.turns else ()
    if len(last) != 1 or not last[0].answer:
        return None
    run: list[CallOutcome] = []
    for turn in reversed(trail.turns):
        if len(turn) != 1 or turn[0].answer != last[0].answer:
            break
        run.append(turn[0])
    if len({outcome.call for outcome in run}) < 2:  # the same call is another kind of loop
        return None
    return Repetition("same_answer", last[0].tool, (len(run) - 1) // 2)


def _find_same_text(trail: RepetitionHistory) -> Repetition | None:
    if not trail.texts:
        return None
    last = trail.texts[-1]
    repeats = trail.texts.count(last) - 1
    return Repetition("same_text", last if len(last) <= 60 else last[:59] + "…", repeats) if repeats else None


def repetition_note(trail: RepetitionHistory, limit: int) -> str:
    """Return `describe_repetition` as a note to the model."""
    description = describe_repetition(trail, limit, spell_tool=wire_name)
    return f"Note: {description}" if description else ""


def describe_repetition(trail: RepetitionHistory, limit: int, spell_tool: Callable[[str], str] = str) -> Text:
    """Describe the loop while the run can still leave it; else empty. `limit`: repetitions that end the run."""
    loop = find_repetition(trail) if limit else None
    if loop is None or not max(1, min(LEAST_TOLD, limit - 1)) <= loop.repeats < limit:
        return Text("")
    return text("circles.change_approach", what=_describe(loop, spell_tool))


def repetition_failure(trail: RepetitionHistory, limit: int) -> Failure | None:
    """Return the failure if the loop repeated `limit` times, else None."""
    loop = find_repetition(trail) if limit else None
    if loop is None or loop.repeats < limit:
        return None
    return Failure(
        kind="limit",
        message=text("circles.ended", kind=text(KINDS[loop.kind]), what=_describe(loop, str)),
        hint=text("circles.ask_otherwise"),
    )


def _describe(loop: Repetition, spell_tool: Callable[[str], str]) -> Text:
    subject, times = loop.what, loop.repeats + 1
    if loop.kind in ("same_result", "same_answer", "same_failure", "alternating"):
        subject = _TOOL_NAME.sub(lambda name: spell_tool(name[0]), subject)
    match loop.kind:
        case "same_result":
            return text("circles.same_result", tool=subject, count=times)
        case "same_answer":
            return text("circles.same_answer", tool=subject)
        case "same_failure":
            return text("circles.same_failure", tool=subject, count=times)
        case "alternating":
            return text("circles.alternating", tools=subject, count=times)
        case "same_text":
            words = f"“{subject}”" if subject else text("circles.nothing")
            return text("circles.same_text", what=words, count=times)
        case "undone_edits":
            return text("circles.undone_edits", path=subject, count=loop.repeats)
