"""The same turns with pydantic-ai; prints seconds of CPU of each round. Arguments: address, rounds."""

# What it imports is in a venv of its own.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

import asyncio
import sys
from time import process_time

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

called = list[str]()


def bench__echo(text: str) -> str:
    """Says it again."""
    called.append(text)
    return text


async def main(address: str, rounds: int) -> None:
    model = OpenAIChatModel("bench", provider=OpenAIProvider(base_url=address, api_key="none"))
    agent = Agent(model, tools=[bench__echo])
    for number in range(rounds + 1):
        began = process_time()
        async with agent.run_stream_events("go", usage_limits=UsageLimits(request_limit=None)) as events:
            async for _ in events:
                pass
        if number:  # the first is for warming up
            print(process_time() - began)
    assert len(called) == 20 * (rounds + 1), len(called)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
