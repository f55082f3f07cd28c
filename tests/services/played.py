"""A service of its own for tests that are not in Python: plays one of the examples until its input ends.

    python -m tests.services.played thirteen_steps|four_agents

Its first line says in JSON where it listens: {"model": address, "name": of the model, "web": address}.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tests.services import four_agents, thirteen_steps
from tests.services.models import MODEL, serving
from tests.services.web import local_web

PLAYS = {"thirteen_steps": thirteen_steps.model(thirteen_steps.native), "four_agents": four_agents.play}


async def played(name: str) -> None:
    async with serving(PLAYS[name]) as service, local_web() as web:
        web.links = [("https://roman.example.com/rules", "Subtractive notation")]
        where = {"model": f"http://127.0.0.1:{service.port}/v1", "name": MODEL, "web": web.url("")}
        sys.stdout.write(json.dumps(where) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(played(sys.argv[1]))
