"""How long a call of a server may take."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from daiku.settings.config import Config
from daiku.texts.text import NO_TEXT, Text
from daiku.tools.mcp.server import MAX_CALL_SECONDS, OpenCalls
from daiku.tools.tool import Answer, ToolContext


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_has_time_while_a_person_is_asked_and_its_own_again_afterwards(*, fails: bool) -> None:
    left: list[float] = []

    async def person(question: Text, choices: tuple[Text, ...]) -> Answer:
        left.append(remaining())
        if fails:
            raise KeyError
        return cast(Any, None)

    def remaining() -> float:
        return (clock.when() or 0) - asyncio.get_running_loop().time()

    nothing = cast(Any, None)
    context = ToolContext("s", "r", "c", nothing, nothing, Config(), lambda _: None, ask=person)
    calls = OpenCalls(idle_seconds=60)
    async with asyncio.timeout(60) as clock:
        with calls.track(context, clock):
            ask = calls.find_ask()
            assert ask is not None
            try:
                await ask(NO_TEXT, ())
            except KeyError:
                assert fails
            left.append(remaining())
    assert left == [pytest.approx(MAX_CALL_SECONDS, abs=30), pytest.approx(60, abs=30)]
