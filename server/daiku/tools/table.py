"""The one table of tools: everything built in, and what packages plug in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from daiku.memory.tool import MEMORY_FACES
from daiku.playbook.tool import PLAYBOOK_FACES, playbook_tools
from daiku.run.rules.outside import Advises, Terminals
from daiku.tools.ask import ASK_TOOLS
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.documents.tools import build_document_tools
from daiku.tools.editor import EDITOR_TOOLS
from daiku.tools.face import Face
from daiku.tools.files.changing import file_tools
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.files.seen import SeenTexts
from daiku.tools.find import FIND_TOOLS
from daiku.tools.git.committing import COMMIT
from daiku.tools.git.git import GIT_TOOLS
from daiku.tools.mcp.resources import FACES
from daiku.tools.shell import build_shell_tools
from daiku.tools.tool import Tool
from daiku.tools.web import Web, build_web_tools
from daiku.tools.web.cache import WebCache
from daiku.tools.work.handoff import EXPLORE_TOOLS, handoff_tools
from daiku.tools.work.plan import PLAN_TOOLS, TASK_TOOLS, TODO_TOOLS


def builtin_tools(
    home: Path | None = None,
    *,
    editor: bool = False,
    seen: SeenTexts | None = None,
    agents: Mapping[str, str] | None = None,
    terminals: Terminals | None = None,
    documents: DocumentDesk | None = None,
    playbooks: Advises | None = None,
    redact: Callable[[str], str] = str,
) -> tuple[Tool, ...]:
    """Every tool of this package, in the order in which models are told of them. What was fetched is
    kept for a while below `home`, without one in memory only; so is what commands made of protected files.
    `editor`: one is connected. `seen`: what models saw of files, also by other ways than these tools.
    `agents`: who can be handed a request, and what they do. `documents`: what the drafting agents share. `terminals`:
    those of the editor. `playbooks`: what is searched in them, where they are read. `redact` takes secrets
    out of what is kept below `home`."""
    web = Web(cache=WebCache(home / "web" if home else None, redact=redact))
    return (
        *file_tools(seen),
        *SEARCH_TOOLS,
        *(EDITOR_TOOLS if editor else ()),
        *build_shell_tools(home, terminals),
        *GIT_TOOLS,
        COMMIT,
        *build_web_tools(web),
        *TODO_TOOLS,
        *PLAN_TOOLS,
        *TASK_TOOLS,
        *handoff_tools(agents or {}),
        *EXPLORE_TOOLS,
        *build_document_tools(documents or DocumentDesk()),
        *playbook_tools(playbooks),
        *ASK_TOOLS,
        *FIND_TOOLS,
    )


@cache
def faces() -> Mapping[str, Face]:
    """What people see of our tools, by name; a tool of others is shown by its own name."""
    ours = {tool.name: tool.face for tool in builtin_tools(editor=True) if tool.face is not None}
    return MappingProxyType({**ours, **FACES, **MEMORY_FACES, **PLAYBOOK_FACES})
