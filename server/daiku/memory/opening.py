"""The memory that the settings ask for: its database, its embedder, whose it is."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import partial
from pathlib import Path

from daiku.domain.errors import LLMError
from daiku.llm.embed import Embedder, Unusable, open_embedder
from daiku.llm.table import LLMSettings
from daiku.memory.memory import Memory
from daiku.memory.references import ReferenceIndex
from daiku.memory.stores import open_store
from daiku.settings.config import Config

DATABASE = "memory.db"
"""Below the folder of all state, apart from the conversations: sqlite-vec may need another SQLite library than Python's
own, and two libraries must not have one file open in one process."""


def open_memory(config: Config, workspace: str, home: Path, redact: Callable[[str], str]) -> Memory:
    """The memory of this person and this workspace, as `memory` and `storage` of the settings say. Raises UsageError."""
    settings = config.memory
    return Memory(
        config.storage.database_url or home / DATABASE,
        embedder=_embedder(settings.embedder, config.llm),
        user=settings.user or login_name(),
        workspace=workspace,
        top_k=settings.top_k,
        token_budget=settings.token_budget,
        redact=redact,
    )


def open_references(config: Config, workspace: str, home: Path) -> ReferenceIndex:
    """Search in the references of a workspace, in the database and by the embedder of the memory."""
    return ReferenceIndex(
        partial(open_store, config.storage.database_url or home / DATABASE),
        partial(open_embedder, config.memory.embedder, config.llm),
        workspace,
    )


def _embedder(name: str, llm: LLMSettings) -> Embedder:
    """The embedder of the settings. A missing key is no reason not to start: until it is there words are searched."""
    try:
        return open_embedder(name, llm)
    except LLMError as wrong:
        return Unusable(name, wrong)


def login_name() -> str:
    """Who is logged in; empty where the system does not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        return ""
