"""The one table of tools: everything built in, and what packages plug in."""

from __future__ import annotations

from pathlib import Path

from daiku.tools.ask import ASK_TOOLS
from daiku.tools.editor import EDITOR_TOOLS
from daiku.tools.files.changing import file_tools
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.files.seen import Seen
from daiku.tools.git.git import GIT_TOOLS
from daiku.tools.shell import shell_tools
from daiku.tools.tool import Tool
from daiku.tools.web import Web, web_tools
from daiku.tools.web.cache import Cache
from daiku.tools.work.handoff import HANDOFF_TOOLS
from daiku.tools.work.plan import PLAN_TOOLS
from daiku.tools.work.task import TASK_TOOLS


def builtin_tools(
    home: Path | None = None, *, editor: bool = False, seen: Seen | None = None
) -> tuple[Tool, ...]:
    """Every tool of this package, in the order in which models are told of them. What was fetched is
    kept for a while below `home`, without one in memory only; so is what commands made of protected files.
    `editor`: one is connected. `seen`: what models saw of files, also by other ways than these tools."""
    web = Web(cache=Cache(home / "web" if home else None))
    return (
        *file_tools(seen),
        *SEARCH_TOOLS,
        *(EDITOR_TOOLS if editor else ()),
        *shell_tools(home),
        *GIT_TOOLS,
        *web_tools(web),
        *PLAN_TOOLS,
        *TASK_TOOLS,
        *HANDOFF_TOOLS,
        *ASK_TOOLS,
    )
