"""A GitHub of this machine, and a machine that works its items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.github.yard import GitHubYard, github_yard
from tests.work.github.desk import MEND, Desk


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[GitHubYard]:
    """A forge of this test's own."""
    with github_yard(tmp_path / "forge") as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, yard: GitHubYard) -> Desk:
    found = Desk(tmp_path / "desk", yard)
    found.script(*MEND)
    return found
