"""Fixtures of attacks that are played in real runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.scene import Scene, scene


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene whose home is that of the process."""
    with scene() as made:
        monkeypatch.setenv("HOME", str(made.home))
        yield made
