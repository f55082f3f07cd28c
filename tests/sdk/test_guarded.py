"""Guardrails of a Runner: what is said meanwhile, and what a router used, are judged and counted too."""

from __future__ import annotations

import asyncio

from daiku import Agent, Guardrail, LLMRouter, Runner, TokenGuard, tool
from daiku.domain.events import MessageEvent, Notice
from daiku.testing import FakeLLM


async def test_what_is_said_meanwhile_is_judged_although_that_takes_time() -> None:
    """R1.13: a pattern that is looked for outside this process delays the word, and does not lose it."""
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "done"

    said: list[str] = []
    model = FakeLLM({"tool": "wait", "args": {}}, "ok")
    async with Runner(model=model, guardrails=[Guardrail(regex_blocks=[r"ba+d"])]) as runner:
        async for chunk in runner.stream(Agent("a", "You wait.", tools=[wait]), "go"):
            match chunk.event:
                case MessageEvent(role="user") | Notice():
                    said.append(chunk.event.text)
                case _:
                    pass
            if chunk.type == "tool_call":
                runner.steer(chunk.run, "a nice word")
                runner.steer(chunk.run, "a baaad word")
            if len(said) == 2:
                release.set()
    assert "a nice word" in said
    assert not any("baaad" in each for each in said)
    assert len(said) == 2


async def test_what_a_router_used_counts_for_the_token_guard() -> None:
    """R1.34: routing is a call of a model too."""
    used = []
    for router in (None, LLMRouter(FakeLLM('{"agents": []}'))):
        guard = TokenGuard(max_tokens=100_000)
        async with Runner(model=FakeLLM("Hello."), guardrails=[guard], router=router) as runner:
            result = await runner.run(Agent("a", "You greet."), "hello")
        used.append(await guard.used(result.session_id))
    assert used[1] > used[0] > 0
