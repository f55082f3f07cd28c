"""Comments on an active item: each is passed on once, even after one that a guardrail blocks."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from daiku.domain.errors import DaikuError, Failure, GuardrailViolation
from daiku.run.runs import Runs
from daiku.store.sqlite import DatabaseFault
from daiku.texts.text import Text
from tests.work.contexts.desk import ITEM, desk, write

BLOCKED = GuardrailViolation(Failure(kind="guardrail", message=Text("blocked")))


async def passed_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: DaikuError, *words: str
) -> list[str]:
    """Return the messages that an active run gets. The first one fails."""
    told: list[str] = []

    async def steer(_: Runs, run: str, text: str, agent: str = "") -> None:
        told.append(text)
        if len(told) == 1:
            raise failing

    monkeypatch.setattr(Runs, "steer", steer)
    monkeypatch.setattr("daiku.items.attempt.LOOK_SECONDS", 0.01)
    slow = {"text": "one", "delay_ms": 500, "calls": [write("a.txt")]}
    async with desk(folder, slow, {"text": "All done."}) as at:
        claim = at.claim()
        for number, said in enumerate(words):
            at.items.messages.add(ITEM, said, str(number))
        await at.work(claim)
    return told


async def test_a_blocked_comment_is_judged_once_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.1"""
    told = await passed_on(tmp_path, monkeypatch, BLOCKED, "blocked", "Use tabs.")
    assert told == ["blocked", "Use tabs."]


async def test_words_are_passed_on_after_the_database_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A23.1: the failure is logged as a warning."""
    caplog.set_level(logging.INFO, "daiku.items")
    told = await passed_on(tmp_path, monkeypatch, DatabaseFault("held"), "Use tabs.")
    assert told == ["Use tabs.", "Use tabs."]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
