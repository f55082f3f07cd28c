"""The client that the official conformance suite starts: our own Servers, a person who says yes to all.

`mcp_conformance.py SOCKET` serves calls of `forked.py SOCKET URL`; the suite names the scenario in MCP_CONFORMANCE_SCENARIO and gives what it hands
to clients in MCP_CONFORMANCE_CONTEXT. Signing in is what a browser would do: it follows the address.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "server")]

import httpx2  # noqa: E402  # after the path is set

from daiku.domain.config import MCPServerSettings, MCPSignIn  # noqa: E402
from daiku.domain.events import Notice  # noqa: E402
from daiku.tools.tool import Answer  # noqa: E402
from tests.services.forked import serve  # noqa: E402
from tests.tools.mcp.play import Played  # noqa: E402

FOCAL = "suite/json_schema_2020_12_tool"
METADATA = "https://conformance-test.local/client-metadata.json"


class Browser:
    """Opens the page that a sign-in names, and goes where it leads."""

    def __init__(self) -> None:
        self.visits: list[asyncio.Task[None]] = []

    def hear(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        if "Open this page:" in text:
            self.visits.append(asyncio.ensure_future(self._visit(text.rpartition("\n")[2])))

    async def _visit(self, address: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True) as http:
            for _ in range(50):  # our own port opens in the moment after it was told
                try:
                    await http.get(address)
                    return
                except httpx2.ConnectError:
                    await asyncio.sleep(0.05)


async def agree(question: str, choices: tuple[str, ...]) -> Answer:
    """A person who answers every form with its defaults."""
    return Answer("Answer", choices.index("Answer")) if "Answer" in choices else Answer("")


def arguments(schema: Any) -> dict[str, Any]:
    """Some value for each argument."""
    by_type: dict[str, Any] = {
        "string": "x",
        "integer": 5,
        "number": 5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    properties: dict[str, Any] = schema.get("properties", {})
    return {name: by_type.get(str(node.get("type")), "x") for name, node in properties.items()}


async def main() -> int:
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    sign_in = MCPSignIn(
        client_id=given.get("client_id", ""),
        client_secret=given.get("client_secret", ""),
        client_metadata_url=METADATA,
    )
    settings = MCPServerSettings(mcp_server_name="suite", url=sys.argv[-1], oauth=sign_in)
    browser = Browser()
    with tempfile.TemporaryDirectory() as folder:
        played = Played(Path(folder), (settings,))
        try:
            for question in played.servers.list_questions():
                played.servers.record_answer(question, "allow_once")
            played.hear = lambda event: browser.hear(event.text) if isinstance(event, Notice) else None
            await played.servers.start_allowed(browser.hear, person=True, seconds=100)
            (report,) = played.servers.list_reports()
            sys.stderr.write(f"{report}\n")
            planned = given.get("toolCalls") or []
            calls = [(call["name"], call.get("arguments", {})) for call in planned] or [
                (name.partition("/")[2], None) for name in report.tools
            ]
            for name, args in calls:
                spec = played.registry.spec(f"suite/{name}")
                if spec is not None:
                    values = arguments(spec.parameters) if args is None else args
                    if "schema" in values:  # it wants to see what came of the schema of another tool
                        values["schema"] = other.parameters if (other := played.registry.spec(FOCAL)) else {}
                    result = await played.call(f"suite/{name}", agree, **values)
                    sys.stderr.write(f"{name}: {result.text[:300]}\n")
            await asyncio.gather(*browser.visits)
        finally:
            await played.servers.aclose()
    return 0


if __name__ == "__main__":
    for name in ("agreement", "connection", "resources", "transport.oauth", "transport.server_transport"):
        import_module(f"daiku.tools.mcp.{name}")  # what a call imports, and with it the SDK
    serve(sys.argv[1], lambda: asyncio.run(main()))
