"""The same turns with openai-agents; prints seconds of CPU of each round. Arguments: address, rounds."""

# What it imports is in a venv of its own.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

import asyncio
import sys
from time import process_time

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

called = list[str]()


@function_tool
def bench__echo(text: str) -> str:
    """Says it again."""
    called.append(text)
    return text


async def main(address: str, rounds: int) -> None:
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("bench", AsyncOpenAI(base_url=address, api_key="none"))
    agent = Agent("bench", tools=[bench__echo], model=model)
    for number in range(rounds + 1):
        began = process_time()
        streamed = Runner.run_streamed(agent, "go", max_turns=1000)
        async for _ in streamed.stream_events():
            pass
        if number:  # the first is for warming up
            print(process_time() - began)
    assert len(called) == 20 * (rounds + 1), len(called)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
