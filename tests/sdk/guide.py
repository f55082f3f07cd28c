"""The examples of the library guide and the cookbook, and what a model says and a person sees when each of them runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.conftest import ROOT

PAGES = (ROOT / "docs" / "library" / "guide.md", ROOT / "docs" / "library" / "cookbook.md")
_EXAMPLE = re.compile(r"<!-- example: (?P<name>.+?) -->\n```python\n(?P<code>.*?)```\n", re.DOTALL)
CLOCK = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("clock")


@server.tool()
def now() -> str:
    """Tell the time."""
    return "12:00"


server.run()
'''
"""The MCP server of the example, as a program of its own."""


@dataclass(frozen=True, slots=True)
class Play:
    """`replies` are what the model answers in turn, each a text or the name and arguments of a call; `prints` is what
    the example prints; `lines` are at most so many, imports counted. `heard` stands in the last request."""

    lines: int
    replies: tuple[str | tuple[str, dict[str, Any]], ...]
    prints: str
    heard: str = ""


PLAYS: dict[str, Play] = {
    "hello": Play(3, ("Welcome, Ann.",), "Welcome, Ann.\n"),
    "tool": Play(
        6,
        (("weather", {"city": "Kyoto", "days": "2"}), "It will be sunny."),
        "It will be sunny.\n",
        "Sunny in Kyoto for 2 days.",
    ),
    "typed output": Play(
        6,
        (
            ("result__give", {"name": "Kyoto", "people": "many"}),
            ("result__give", {"name": "Kyoto", "people": 1_440_000}),
        ),
        "name='Kyoto' people=1440000\n",
        "people",
    ),
    "stream": Play(4, ("Rain on the roof, and tea.",), "Rain on the roof, and tea."),
    "hand-off": Play(
        4,
        (
            ("agent__handoff", {"agent": "poet", "request": "a haiku on rain"}),
            "Rain, rain, rain.",
            "He says: rain.",
        ),
        "He says: rain.\n",
        "Rain, rain, rain.",
    ),
    "guardrail": Play(7, (), "guardrail "),
    "approval": Play(8, (("buy", {"item": "tea"}), "There it is."), "There it is.\n", "Bought tea."),
    "session": Play(4, ("Hello, Ann.", "You are Ann."), "You are Ann.\n", "I am Ann."),
    "MCP": Play(4, (("clock__now", {}), "It is noon."), "It is noon.\n", "12:00"),
    "fake model": Play(3, (), ""),
    "route by rules": Play(7, (), "Rain on the roof.\nWelcome.\n"),
    "token budget": Play(5, (), "limit\n"),
    "test with tools": Play(8, (), ""),
    "no network": Play(5, (), "Hello, Ann.\n"),
}


def examples() -> dict[str, str]:
    """The code of each example by its name."""
    text = "".join(page.read_text("utf-8") for page in PAGES)
    return {found["name"]: found["code"] for found in _EXAMPLE.finditer(text)}
