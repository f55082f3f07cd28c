"""A workspace whose model is a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import write_script


@pytest.fixture
def script(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Play these replies in the workspace."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def play(*lines: dict[str, Any]) -> None:
        monkeypatch.setenv("DAIKU_LLM__MODEL", write_script(workspace, *lines))

    return play
