"""The memory that the settings ask for: its database, its embedder, whose it is."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import partial
from pathlib import Path

from daiku.memory.memory import Memory
from daiku.memory.references import ReferenceIndex
from daiku.memory.stores import open_store
from daiku.models.embed import open_embedder, open_embedder_or_placeholder
from daiku.settings.config import Config


def open_memory(config: Config, workspace: str, home: Path, redact: Callable[[str], str]) -> Memory:
    """The memory of this person and this workspace, as `memory` and `storage` of the settings say. Raises UsageError."""
    settings = config.memory
    return Memory(
        config.storage.memory(home),
        embedder=open_embedder_or_placeholder(settings.embedder, config.llm),
        user=settings.user or login_name(),
        workspace=workspace,
        top_k=settings.top_k,
        token_budget=settings.token_budget,
        redact=redact,
    )


def open_references(config: Config, workspace: str, home: Path) -> ReferenceIndex:
    """Search in the references of a workspace, in the database and by the embedder of the memory."""
    return ReferenceIndex(
        partial(open_store, config.storage.memory(home)),
        partial(open_embedder, config.memory.embedder, config.llm),
        workspace,
    )


def login_name() -> str:
    """Who is logged in; empty where the system does not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        return ""
