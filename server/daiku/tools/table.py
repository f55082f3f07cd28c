"""The one table of tools: everything built in, and what packages plug in."""

from __future__ import annotations

from daiku.tools.ask import ASK_TOOLS
from daiku.tools.editor import EDITOR_TOOLS
from daiku.tools.files import FILE_TOOLS
from daiku.tools.git import GIT_TOOLS
from daiku.tools.plan import PLAN_TOOLS
from daiku.tools.search import SEARCH_TOOLS
from daiku.tools.shell import shell_tools
from daiku.tools.tool import Tool


def builtin_tools(*, editor: bool = False) -> tuple[Tool, ...]:
    """Every tool of this package, in the order in which models are told of them. `editor`: one is connected."""
    known = EDITOR_TOOLS if editor else ()
    return (*FILE_TOOLS, *SEARCH_TOOLS, *known, *shell_tools(), *GIT_TOOLS, *PLAN_TOOLS, *ASK_TOOLS)
