"""Questions about the project, answered by explorers side by side; only their answers come back."""

from __future__ import annotations

from daiku.core.text.words import limit_words
from daiku.domain.events import HandoffEnd
from daiku.domain.runs import has_answer
from daiku.domain.tools import ToolResult
from daiku.domain.work.handovers import Brief, SaidInWords
from daiku.runs.live import LiveRun
from daiku.runs.nested.handoff import Nested, nest_at_once

MAX_ROUNDS = 25
"""Replies of one explorer; the last of them is for what it has by then."""
SHARE = 2
"""Of the replies that are left to the whole run, explorers that are at work at once get one part in this many
together: what they find still has to be used."""
MAX_WORDS = 1000


async def explore(parent: LiveRun, call: str, questions: tuple[str, ...]) -> ToolResult:
    """Have each of `questions` answered by an explorer of its own, all at once. One that fails is told, the others
    stand. Run again after a restart it goes on where it was. Raises HandoffDepthExceeded, Paused."""
    explorer, most = parent.log.services.agents.find("explorer"), _rounds_each(parent, len(questions))
    works = {
        f"{call}:{n}": Nested(explorer, question, Brief(request=question), max_rounds=most)
        for n, question in enumerate(questions)
    }
    backs = await nest_at_once(parent, works)
    answers = [_answer(back) for back in backs]
    parts = [answer or _failure(back) for answer, back in zip(answers, backs, strict=True)]
    if len(questions) > 1:
        parts = [
            f"{n}. {question}\n{part}"
            for n, (question, part) in enumerate(zip(questions, parts, strict=True), 1)
        ]
    return ToolResult(ok=any(answers), text="\n\n".join(parts), untrusted=any(back.tainted for back in backs))


def _rounds_each(parent: LiveRun, explorers: int) -> int:
    """Replies of each of so many explorers at once."""
    limit = parent.record.state.request.asked_limits.max_rounds
    if not limit:
        return MAX_ROUNDS
    left = limit - parent.tree.budget.budget.rounds - parent.kept_rounds
    return max(1, min(MAX_ROUNDS, left // SHARE // explorers))


def _answer(back: HandoffEnd) -> str:
    """What the explorer found, also where a limit ended it before it was done; empty where it has failed."""
    found = _found(back)
    if not found or not (has_answer(back.status) or back.status == "limit"):
        return ""
    return f"{found}\n(It was not done: {back.problem})" if back.status == "limit" else found


def _failure(back: HandoffEnd) -> str:
    found = _found(back)
    why = f"No answer: {back.problem or f'the explorer ended as {back.status}'}"
    return f"{why}\n{found}" if found else why


def _found(back: HandoffEnd) -> str:
    said = back.handover.text.strip() if isinstance(back.handover, SaidInWords) else ""
    return limit_words(said, MAX_WORDS)
