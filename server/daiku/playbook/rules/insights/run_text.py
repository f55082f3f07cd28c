"""A run that has ended as text for a model: what was asked, said, called and refused, and how it ended; bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence

from daiku.domain.chunks import Chunk, top_runs
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    Failure,
    HandoffStart,
    InputGiven,
    MessageEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Lesson
from daiku.run.rules.state.state import PERSON
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.truncate import truncate_middle

LONGEST = 24_000
"""Characters of a run that a model is shown."""
SHARES = (2000, 800, 300, 120)
"""Characters of one result and one text: the most with which all of it fits."""


def chunks_of(chunks: Sequence[Chunk], run: str) -> list[Chunk]:
    """The chunks of a run at the top, with those of the runs below it that worked for it."""
    tops = top_runs(chunks)
    own = [each for each in chunks if tops[each.run] == run]
    end = next(
        (at for at, each in enumerate(own) if each.run == run and isinstance(each.event, RunFinished)), None
    )
    return own if end is None else own[: end + 1]


def is_worth_a_look(chunks: Sequence[Chunk]) -> bool:
    """Return whether a run, by its chunks to its end, ended badly, cited a lesson, or was corrected by a person. It
    ended badly if its last command failed, or if it did some work and did not complete.

    A command that fails before others pass is how tests are written; rules learn from it without a model."""
    if not chunks or not isinstance(end := chunks[-1].event, RunFinished) or end.status == "cancelled":
        return False
    results = [each.event for each in chunks if isinstance(each.event, ToolResponse)]
    last_command = next((each for each in reversed(results) if each.tool == "shell/run"), None)
    ended_badly = (end.status != "completed" and results) or (
        last_command is not None and not last_command.ok
    )
    cites = bool(end.used_bullets) and chunks[-1].agent != GENERATOR
    return bool(ended_badly) or cites or any(_corrects(each) for each in chunks)


def _corrects(chunk: Chunk) -> bool:
    match chunk.event:
        case Restored() | Review(decision="reject"):
            return True
        case MessageEvent(role="user", agent=agent):
            return agent == PERSON
        case ApprovalGiven(unattended=False) as given:
            return bool(given.feedback) or given.decision.startswith("reject")
        case _:
            return False


GENERATOR = "generator"
"""The agent whose answers cite lessons each time: what they cite is in its result already."""
LOOKS = frozenset({"reflector", "curator"})
"""The agents that look at runs which have ended; what they say is no part of those."""


def is_of_a_look(chunk: Chunk) -> bool:
    """Whether the chunk is of a model's look at the run around it, not of work for that run."""
    return chunk.agent in LOOKS and chunk.parent is not None


def is_looked_at(chunks: Sequence[Chunk], run: str) -> bool:
    """Whether a model has looked at the run already, as far as is on record; what nobody could read counts too."""
    return any(is_of_a_look(chunk) and chunk.parent == run for chunk in chunks)


def lessons_told(chunks: Sequence[Chunk]) -> tuple[Lesson, ...]:
    """The lessons that a run was told, each once, by its chunks."""
    starts = (each.event for each in chunks if isinstance(each.event, RunStarted))
    return tuple({each.id: each for start in starts for each in start.lessons}.values())


def text_of_run(chunks: Sequence[Chunk]) -> str:
    """A run in lines, so short that all of it is within `LONGEST`: results are cut before anything is left out."""
    whole = ""
    for share in SHARES:
        whole = "\n".join(line for each in chunks if (line := _line(each, share)))
        if len(whole) <= LONGEST:
            return whole
    return truncate_middle(whole, LONGEST)


def _line(chunk: Chunk, share: int) -> str:
    match chunk.event:
        case RunStarted(prompt=prompt):
            return f"{'The person asked' if chunk.parent is None else f'{chunk.agent} was asked'}: {_cut(prompt, share)}"
        case MessageEvent(role="assistant", partial=False, text=said):
            return f"{chunk.agent} said: {_cut(str(said), share)}" if str(said).strip() else ""
        case MessageEvent(role="user", text=said, agent=agent):
            return f"{'The person' if agent == PERSON else 'Daiku'} said: {_cut(str(said), share)}"
        case ToolCallEvent(tool=tool, args=args):
            return f"{chunk.agent} called {tool} {_cut(json.dumps(args, ensure_ascii=False), share)}"
        case ToolResponse(tool=tool, ok=ok, result=result):
            return f"{tool} {'worked' if ok else 'failed'}: {truncate_output(str(result), share)}"
        case HandoffStart(to=to, request=request):
            return f"{chunk.agent} handed work to {to}: {_cut(request, share)}"
        case Failure(message=message):
            return f"It failed: {_cut(str(message), share)}"
        case RunFinished(status=status):
            return f"{'The run' if chunk.parent is None else f'The part of {chunk.agent}'} ended: {status}"
        case _:
            return _by_person(chunk, share)


def _by_person(chunk: Chunk, share: int) -> str:
    match chunk.event:
        case ApprovalAsked(tool=tool, why=why):
            return f"The person was asked about {tool}: {_cut(str(why), share)}"
        case ApprovalGiven(decision=decision, feedback=feedback, unattended=False):
            return f"The person decided {decision}{f': {_cut(feedback, share)}' if feedback else ''}"
        case ApprovalGiven(decision=decision):
            return f"Nobody was there to be asked: {decision}"
        case InputGiven(text=said, unattended=False):
            return f"The person answered: {_cut(said, share)}"
        case Review(decision=decision, path=path):
            return f"The person looked at the changes of {path}: {decision}"
        case Restored():
            return "The person took changes back"
        case _:
            return ""


def _cut(text: str, share: int) -> str:
    return truncate_middle(text.strip(), share)
