"""Opening of the configured memory: its database, embedder, and owner."""

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
    """Open the memory of this user and workspace as `memory` and `storage` configure it.

    Raises UsageError.
    """
    settings = config.memory
    return Memory(
        config.storage.memory(home),
        embedder=open_embedder_or_placeholder(settings.embedder, config.llm),
        user=settings.user or get_login_name(),
        workspace=workspace,
        top_k=settings.top_k,
        token_budget=settings.token_budget,
        redact=redact,
    )


def open_references(config: Config, workspace: str, home: Path) -> ReferenceIndex:
    """Return the index of a workspace's references, in the memory's database and by its embedder."""
    return ReferenceIndex(
        partial(open_store, config.storage.memory(home)),
        partial(open_embedder, config.memory.embedder, config.llm),
        workspace,
    )


def get_login_name() -> str:
    """Return the name of the logged-in user; empty if it is unknown."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        return ""
