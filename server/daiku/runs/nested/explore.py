"""Questions about the project, answered by explorers side by side; only their answers come back."""

from __future__ import annotations

from daiku.agents.table import find_agent
from daiku.core.text.words import limit_words
from daiku.domain.events import HandoffEnd
from daiku.domain.tools import ToolResult
from daiku.domain.work.handovers import Brief, SaidInWords
from daiku.runs.live import LiveRun
from daiku.runs.nested.handoff import Nested, nest
from daiku.runs.nested.together import together

MAX_ROUNDS = 25
"""Replies of one explorer; the last of them is for what it has by then."""
MAX_WORDS = 1000


async def explore(parent: LiveRun, call: str, questions: tuple[str, ...]) -> ToolResult:
    """Have each of `questions` answered by an explorer of its own, all at once. One that fails is told, the others
    stand. Run again after a restart it goes on where it was. Raises HandoffDepthExceeded, Paused."""
    explorer = find_agent("explorer")
    backs = await together(
        nest(
            parent, f"{call}:{n}", Nested(explorer, question, Brief(request=question), max_rounds=MAX_ROUNDS)
        )
        for n, question in enumerate(questions)
    )
    answers = [_answer(back) for back in backs]
    parts = [answer or _failure(back) for answer, back in zip(answers, backs, strict=True)]
    if len(questions) > 1:
        parts = [
            f"{n}. {question}\n{part}"
            for n, (question, part) in enumerate(zip(questions, parts, strict=True), 1)
        ]
    return ToolResult(ok=any(answers), text="\n\n".join(parts), untrusted=any(back.tainted for back in backs))


def _answer(back: HandoffEnd) -> str:
    """What the explorer found, also where its rounds ran out before it was done; empty where it has failed."""
    if not isinstance(back.handover, SaidInWords) or back.status not in ("completed", "limit"):
        return ""
    found = limit_words(back.handover.text.strip(), MAX_WORDS)
    return f"{found}\n(It was not done: {back.problem})" if back.status == "limit" else found


def _failure(back: HandoffEnd) -> str:
    return f"No answer: {back.problem or f'the explorer ended as {back.status}'}"
