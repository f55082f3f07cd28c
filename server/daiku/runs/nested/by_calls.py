"""Nested runs as the calls of a run start them; what they are done by is imported then."""

from __future__ import annotations

from daiku.domain.tools import ToolResult
from daiku.runs.live import LiveRun, NestedWork
from daiku.tools.tool import TaskWork


async def _hand_over(parent: LiveRun, call: str, agent: str, request: str) -> ToolResult:
    from daiku.runs.nested.handoff import hand_over  # when used

    return await hand_over(parent, call, agent, request)


def _tasks(parent: LiveRun, call: str) -> TaskWork:
    from daiku.runs.nested.taskloop import TaskWork  # when used

    return TaskWork(parent, call)


NESTED = NestedWork(_hand_over, _tasks)
