"""A GitLab source over the GitLab of a test, and its answers as what they must be there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import SecretStr

from daiku.domain.items.forge import ForgeRefusal, FoundItem, RefusalKind
from daiku.domain.items.item import ItemKey, read_key
from daiku.items.gitlab.source import GitLabSource
from daiku.settings.config import GitLabSettings, WorkLabels
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import Thread

T = TypeVar("T")
TODO = "coding agent"
LABELS = WorkLabels()


class Clock:
    """A time that only a test moves; a pause takes no time."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@asynccontextmanager
async def source_of(
    yard: GitLabYard, *projects: str, token: str = "glpat-bot", clock: Clock | None = None, **more: Any
) -> AsyncGenerator[GitLabSource]:
    """A source of these projects. `strip`, `labels` and settings may be given by name."""
    clock = clock or Clock()
    strip = {"strip": more.pop("strip")} if "strip" in more else {}
    labels = more.pop("labels", LABELS)
    asked: dict[str, Any] = {"api_url": yard.api_url, "projects": projects or ("group/name",)} | more
    settings = GitLabSettings(**asked)
    made = GitLabSource(settings, SecretStr(token), labels, sleep=clock.sleep, clock=clock, **strip)
    try:
        yield made
    finally:
        await made.aclose()


def key(text: str) -> ItemKey:
    found = read_key(text)
    assert found is not None
    return found


def given(answer: T | ForgeRefusal) -> T:
    """What was answered, which is no refusal."""
    assert not isinstance(answer, ForgeRefusal), answer
    return answer


def to_orders(answer: tuple[FoundItem, ...] | ForgeRefusal) -> tuple[FoundItem, ...]:
    """Return the items that were found and are not refused."""
    return tuple(item for item in given(answer) if not item.refused)


def kind_of(answer: object) -> RefusalKind:
    """Why it was refused."""
    assert isinstance(answer, ForgeRefusal), answer
    assert str(answer.message)
    return answer.kind


def ours(thread: Thread) -> list[str]:
    """The comments that we posted."""
    return [note["body"] for note in thread.notes if "daiku:" in note["body"]]
