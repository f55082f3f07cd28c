"""The same turns with agno; prints seconds of CPU of each round. Arguments: address, rounds."""

# What it imports is in a venv of its own.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

import asyncio
import sys
from time import process_time

from agno.agent import Agent
from agno.models.openai import OpenAIChat

called = list[str]()


def bench__echo(text: str) -> str:
    """Says it again."""
    called.append(text)
    return text


async def main(address: str, rounds: int) -> None:
    model = OpenAIChat(id="bench", base_url=address, api_key="none")
    agent = Agent(model=model, tools=[bench__echo], telemetry=False)
    for number in range(rounds + 1):
        began = process_time()
        async for _ in agent.arun("go", stream=True):
            pass
        if number:  # the first is for warming up
            print(process_time() - began)
    assert len(called) == 20 * (rounds + 1), len(called)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
