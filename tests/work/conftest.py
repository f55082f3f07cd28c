"""Forges of this machine, for tests of work items."""

from __future__ import annotations

from tests.work.gitlabfake.fixture import gitlab_forge

__all__ = ["gitlab_forge"]
