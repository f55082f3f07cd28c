"""An ended run as text for a model, bounded in length."""

from __future__ import annotations

import json
from collections import Counter
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
"""Maximum length of the text in characters."""
REPEATED = 3
"""Number of failures in a row of one command after which a run needs a reflection."""
SHARES = (2000, 800, 300, 120)
"""Maximum lengths of one result or message in characters; the largest one is used that fits."""


def select_chunks(chunks: Sequence[Chunk], run: str) -> list[Chunk]:
    """Return the chunks of a top-level run and of its nested runs, up to its end."""
    tops = top_runs(chunks)
    own = [each for each in chunks if tops[each.run] == run]
    end = next(
        (at for at, each in enumerate(own) if each.run == run and isinstance(each.event, RunFinished)), None
    )
    return own if end is None else own[: end + 1]


def needs_reflection(chunks: Sequence[Chunk]) -> bool:
    """Return True if a run ended badly, failed repeatedly, or was corrected by the user.

    It ended badly if its last command failed, or if it did some work without completing. A red test before a
    green one does not count, nor a cited lesson: rules learn from both without a model.
    """
    if not chunks or not isinstance(end := chunks[-1].event, RunFinished) or end.status == "cancelled":
        return False
    results = [each.event for each in chunks if isinstance(each.event, ToolResponse)]
    last_command = next((each for each in reversed(results) if each.tool == "shell/run"), None)
    failed = (end.status != "completed" and results) or (last_command is not None and not last_command.ok)
    return bool(failed) or _fails_repeatedly(chunks) or any(is_correction(each) for each in chunks)


def _fails_repeatedly(chunks: Sequence[Chunk]) -> bool:
    """Return True if one command line failed `REPEATED` times without passing in between."""
    commands: dict[str, str] = {}
    failures = Counter[str]()
    for chunk in chunks:
        match chunk.event:
            case ToolCallEvent(tool="shell/run", id=call, args=args):
                commands[call] = str(args.get("command", ""))
            case ToolResponse(tool="shell/run", id=call, ok=ok) if call in commands:
                command = commands[call]
                failures[command] = 0 if ok else failures[command] + 1
                if failures[command] == REPEATED:
                    return True
            case _:
                pass
    return False


def is_correction(chunk: Chunk) -> bool:
    """Return True if the user rejected, undid, or said something during a run."""
    match chunk.event:
        case Restored() | Review(decision="reject"):
            return True
        case MessageEvent(role="user", agent=agent):
            return agent == PERSON
        case ApprovalGiven(unattended=False) as given:
            return bool(given.feedback) or given.decision.startswith("reject")
        case _:
            return False


REFLECTION_AGENTS = frozenset({"reflector", "curator"})
"""Agents of a reflection. Their runs are no part of the run that they reflect on."""


def is_reflection(chunk: Chunk) -> bool:
    """Return True if the chunk belongs to a reflection on the run around it."""
    return chunk.agent in REFLECTION_AGENTS and chunk.parent is not None


def has_reflection(chunks: Sequence[Chunk], run: str) -> bool:
    """Return True if a reflection on the run is recorded, even if its reply was unreadable."""
    return any(is_reflection(chunk) and chunk.parent == run for chunk in chunks)


def list_received_lessons(chunks: Sequence[Chunk]) -> tuple[Lesson, ...]:
    """Return the distinct lessons that a run received."""
    starts = (each.event for each in chunks if isinstance(each.event, RunStarted))
    return tuple({each.id: each for start in starts for each in start.lessons}.values())


def format_run(chunks: Sequence[Chunk]) -> str:
    """Return a run as text of at most `LONGEST` characters. Results are truncated first."""
    lines = ""
    for share in SHARES:
        lines = "\n".join(line for each in chunks if (line := _format_chunk(each, share)))
        if len(lines) <= LONGEST:
            return lines
    return truncate_middle(lines, LONGEST)


def _format_chunk(chunk: Chunk, share: int) -> str:
    match chunk.event:
        case RunStarted(prompt=prompt):
            return f"{'The person asked' if chunk.parent is None else f'{chunk.agent} was asked'}: {_truncate(prompt, share)}"
        case MessageEvent(role="assistant", partial=False, text=message):
            return f"{chunk.agent} said: {_truncate(str(message), share)}" if str(message).strip() else ""
        case MessageEvent(role="user", text=message, agent=agent):
            return f"{'The person' if agent == PERSON else 'Daiku'} said: {_truncate(str(message), share)}"
        case ToolCallEvent(tool=tool, args=args):
            return f"{chunk.agent} called {tool} {_truncate(json.dumps(args, ensure_ascii=False), share)}"
        case ToolResponse(tool=tool, ok=ok, result=result):
            return f"{tool} {'worked' if ok else 'failed'}: {truncate_output(str(result), share)}"
        case HandoffStart(to=to, request=request):
            return f"{chunk.agent} handed work to {to}: {_truncate(request, share)}"
        case Failure(message=message):
            return f"It failed: {_truncate(str(message), share)}"
        case RunFinished(status=status):
            return f"{'The run' if chunk.parent is None else f'The part of {chunk.agent}'} ended: {status}"
        case _:
            return _format_user_action(chunk, share)


def _format_user_action(chunk: Chunk, share: int) -> str:
    match chunk.event:
        case ApprovalAsked(tool=tool, why=why):
            return f"The person was asked about {tool}: {_truncate(str(why), share)}"
        case ApprovalGiven(decision=decision, feedback=feedback, unattended=False):
            return f"The person decided {decision}{f': {_truncate(feedback, share)}' if feedback else ''}"
        case ApprovalGiven(decision=decision):
            return f"Nobody was there to be asked: {decision}"
        case InputGiven(text=answer, unattended=False):
            return f"The person answered: {_truncate(answer, share)}"
        case Review(decision=decision, path=path):
            return f"The person looked at the changes of {path}: {decision}"
        case Restored():
            return "The person took changes back"
        case _:
            return ""


def _truncate(text: str, share: int) -> str:
    return truncate_middle(text.strip(), share)
