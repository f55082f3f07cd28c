"""What a run is told of earlier ones as it begins: memories (R1.93) and lessons of the playbook; the tools of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice
from daiku.domain.held import Lesson, Recalled
from daiku.domain.runs import ApprovalMode, Mode
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Remembers
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.texts.text import Text, joined, text

RECALL_SECONDS = 5.0
"""How long a run waits for its memory, or its playbooks, before it begins without them."""
SHOWN = 80
"""Characters of a memory that the person is shown."""


async def recall(
    services: RunServices, agent: Agent, request: RunRequest, session: str
) -> tuple[tuple[Recalled, ...], tuple[Notice, ...]]:
    """Return the memories for a run's request, and notices. A failing memory stops no run; work items get none."""
    memory = memory_of(services, agent)
    if memory is None or request.approvals == "work":
        return (), ()
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            found = await memory.recall(request.text, session=session)
    except TimeoutError:
        return (), (_warning("memory.not_asked", text("memory.no_answer", seconds=f"{RECALL_SECONDS:g}")),)
    except DaikuError as wrong:
        return (), (_warning("memory.not_asked", wrong.failure.message),)
    recalled = tuple(Recalled(id=each.id, text=each.text, score=each.score) for each in found)
    return recalled, (_told(recalled),) if recalled else ()


async def recall_lessons(
    services: RunServices, question: str, approvals: ApprovalMode, mode: Mode, window: int = 0
) -> tuple[tuple[Lesson, ...], tuple[Notice, ...]]:
    """Return the playbooks' lessons for a request, and notices. A failure stops no run.

    Runs on work items get no personal lessons, runs in ask mode none on building. `window`: tokens, 0 if unknown."""
    if services.playbooks is None:
        return (), ()
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            personal, working = approvals != "work", mode != "ask"
            told = services.playbooks.recall(question, personal=personal, window=window, working=working)
            return await told, ()
    except TimeoutError:
        return (), (_warning("playbook.not_asked", text("memory.no_answer", seconds=f"{RECALL_SECONDS:g}")),)
    except DaikuError as wrong:
        return (), (_warning("playbook.not_asked", wrong.failure.message),)
    except OSError as wrong:
        return (), (_warning("playbook.not_asked", Text(str(wrong))),)


def memory_of(services: RunServices, agent: Agent) -> Remembers | None:
    """The memory of a run of `agent`: its own, else that of all."""
    return agent.memory if agent.memory is not None else services.memory


def remembering(services: RunServices, asked: Agent | str) -> Agent:
    """Return the agent with the tools of its memory, the same copy each time. Raises UsageError: no such agent."""
    agent = asked if isinstance(asked, Agent) else services.agents.find(asked)
    memory = memory_of(services, agent)
    if memory is None:
        return agent
    known = _COPIES.get(agent)
    if known is None or known[0] is not memory:
        from daiku.memory.tool import memory_tools  # when used

        _COPIES[agent] = known = (memory, agent.with_(tools=(*agent.tools, *memory_tools(memory))))
    return known[1]


_COPIES: WeakKeyDictionary[Agent, tuple[Remembers, Agent]] = WeakKeyDictionary()


def _warning(key: str, why: Text) -> Notice:
    return Notice(level="warning", text=text(key, why=why))


def _told(recalled: Sequence[Recalled]) -> Notice:
    shown = [text("memory.one", said=_clip(each.text), id=each.id) for each in recalled]
    return Notice(
        level="info", text=text("memory.recalled", count=len(recalled), things=joined("list", shown))
    )


def _clip(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
