"""A program that uses the library, run as a process of its own: it is killed amid a run, another one goes on with it.

python -m tests.sdk.library_process work STORE FILE     begins a run whose tool writes to FILE and then never ends
python -m tests.sdk.library_process resume STORE FILE   goes on with the run whose id stands in FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from daiku import Agent, Runner, tool
from daiku.testing import FakeLLM


def main(work: str, store: str, place: str) -> None:
    file = Path(place)

    @tool(effect="command")
    async def build() -> str:
        """Build it."""
        file.write_text(f"{file.read_text()}built\n")  # two words
        await asyncio.sleep(3600)
        return "ok"

    agent = Agent("builder", "Build.", tools=[build])

    async def begin() -> None:
        llm = FakeLLM({"tool": "build", "args": {}}, "never")
        async with Runner(model=llm, store=store, approvals="all") as runner:
            async for chunk in runner.stream(agent, "Build it."):
                if chunk.type == "run_started":
                    file.write_text(f"{chunk.run} {chunk.session}\n")

    async def go_on() -> None:
        llm = FakeLLM(lambda request: f"It stands so: {request.messages[-1].text}")
        run = file.read_text().split()[0]
        async with Runner(model=llm, store=store, approvals="all") as runner:
            result = await runner.resume(run, agent=agent)
        sys.stdout.write(f"{result.status} {result.run_id} {result.session_id}\n{result.text}\n")

    asyncio.run(begin() if work == "work" else go_on())


if __name__ == "__main__":
    main(*sys.argv[1:])
