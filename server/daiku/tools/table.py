"""The table of built-in tools and their faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from daiku.memory.tool import MEMORY_FACES
from daiku.run.rules.outside import Advises, Terminals
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.documents.tools import build_document_tools
from daiku.tools.editor import EDITOR_TOOLS
from daiku.tools.face import Face
from daiku.tools.files.changing import build_file_tools
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.files.seen import SeenTexts
from daiku.tools.find import ASK_TOOLS, FIND_TOOLS
from daiku.tools.git.git import COMMIT, GIT_TOOLS
from daiku.tools.mcp.resources import FACES
from daiku.tools.shell import build_shell_tools
from daiku.tools.tool import Tool
from daiku.tools.web import Web, build_web_tools
from daiku.tools.web.cache import WebCache
from daiku.tools.work.handoff import EXPLORE_TOOLS, build_handoff_tools
from daiku.tools.work.lessons import PLAYBOOK_FACES, build_playbook_tools
from daiku.tools.work.plan import PLAN_TOOLS, TASK_TOOLS, TODO_TOOLS


def build_builtin_tools(
    home: Path | None = None,
    *,
    editor: bool = False,
    seen_texts: SeenTexts | None = None,
    agents: Mapping[str, str] | None = None,
    terminals: Terminals | None = None,
    documents: DocumentDesk | None = None,
    playbooks: Advises | None = None,
    redact: Callable[[str], str] = str,
) -> tuple[Tool, ...]:
    """Build every tool of this package, in the order for models.

    Fetched pages and quarantined files are stored below `home`, without it temporarily. `editor`: an editor
    is connected. `seen_texts`: the file texts that models have read, also without these tools. `agents`: the
    agents for handoffs, with descriptions. `documents`: dependencies of the document tools. `terminals`:
    those of the editor. `playbooks`: search in playbooks, if they are used. `redact` removes secrets from
    what is stored below `home`.
    """
    web = Web(cache=WebCache(home / "web" if home else None, redact=redact))
    return (
        *build_file_tools(seen_texts),
        *SEARCH_TOOLS,
        *(EDITOR_TOOLS if editor else ()),
        *build_shell_tools(home, terminals),
        *GIT_TOOLS,
        COMMIT,
        *build_web_tools(web),
        *TODO_TOOLS,
        *PLAN_TOOLS,
        *TASK_TOOLS,
        *build_handoff_tools(agents or {}),
        *EXPLORE_TOOLS,
        *build_document_tools(documents or DocumentDesk()),
        *build_playbook_tools(playbooks),
        *ASK_TOOLS,
        *FIND_TOOLS,
    )


@cache
def collect_faces() -> Mapping[str, Face]:
    """Return the faces of our tools, by name. Tools of others are shown by their own names."""
    own_faces = {tool.name: tool.face for tool in build_builtin_tools(editor=True) if tool.face is not None}
    return MappingProxyType({**own_faces, **FACES, **MEMORY_FACES, **PLAYBOOK_FACES})
