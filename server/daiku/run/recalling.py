"""Memories and lessons that a run receives at its start, and the tools of its memory."""

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
"""Seconds to wait for the memory or the playbooks; after that the run starts without them."""
MOST_SHOWN = 80
"""Characters of a memory that its notice shows, at most."""


async def recall(
    services: RunServices, agent: Agent, request: RunRequest, session: str
) -> tuple[tuple[Recalled, ...], tuple[Notice, ...]]:
    """Return the memories for a run's request, and notices.

    A failing memory stops no run. Runs on work items get no memories.
    """
    memory = memory_of(services, agent)
    if memory is None or request.approvals == "work":
        return (), ()
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            matches = await memory.recall(request.text, session=session)
    except TimeoutError:
        return (), (_warning("memory.not_asked", text("memory.no_answer", seconds=f"{RECALL_SECONDS:g}")),)
    except DaikuError as error:
        return (), (_warning("memory.not_asked", error.failure.message),)
    recalled = tuple(Recalled(id=each.id, text=each.text, score=each.score) for each in matches)
    return recalled, (_recall_notice(recalled),) if recalled else ()


async def recall_lessons(
    services: RunServices, question: str, approvals: ApprovalMode, mode: Mode, window: int = 0
) -> tuple[tuple[Lesson, ...], tuple[Notice, ...]]:
    """Return the lessons of the playbooks for a request, and notices. A failure stops no run.

    Runs on work items get no personal lessons; runs in ask mode get no lessons about making changes.
    `window`: tokens, 0 if unknown.
    """
    if services.playbooks is None:
        return (), ()
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            personal, working = approvals != "work", mode != "ask"
            lessons = services.playbooks.recall(question, personal=personal, window=window, working=working)
            return await lessons, ()
    except TimeoutError:
        return (), (_warning("playbook.not_asked", text("memory.no_answer", seconds=f"{RECALL_SECONDS:g}")),)
    except DaikuError as error:
        return (), (_warning("playbook.not_asked", error.failure.message),)
    except OSError as error:
        return (), (_warning("playbook.not_asked", Text(str(error))),)


def memory_of(services: RunServices, agent: Agent) -> Remembers | None:
    """Return the memory for a run of `agent`: its own, or the shared one."""
    return agent.memory if agent.memory is not None else services.memory


def with_memory_tools(services: RunServices, requested: Agent | str) -> Agent:
    """Return the agent with the tools of its memory, the same copy each time.

    Raises UsageError: unknown agent.
    """
    agent = requested if isinstance(requested, Agent) else services.agents.find(requested)
    memory = memory_of(services, agent)
    if memory is None:
        return agent
    cached = _COPIES.get(agent)
    if cached is None or cached[0] is not memory:
        from daiku.memory.tool import build_memory_tools  # when used

        _COPIES[agent] = cached = (memory, agent.with_(tools=(*agent.tools, *build_memory_tools(memory))))
    return cached[1]


_COPIES: WeakKeyDictionary[Agent, tuple[Remembers, Agent]] = WeakKeyDictionary()


def _warning(key: str, why: Text) -> Notice:
    return Notice(level="warning", text=text(key, why=why))


def _recall_notice(recalled: Sequence[Recalled]) -> Notice:
    items = [text("memory.one", said=_clip(each.text), id=each.id) for each in recalled]
    return Notice(
        level="info", text=text("memory.recalled", count=len(recalled), things=joined("list", items))
    )


def _clip(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 1]}…"
