"""What a person is asked shows all of it: nothing of a commit's message or of a question is unseen or out of order."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.events import ApprovalAsked, InputAsked
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app

HIDDEN = "\u202e\u2066\u200b\u2060\ufeff\u00ad\u3164\x1b\x07\x7f\u2028\U000e0041\U000e0020\U000e007f"
"""One of each kind: direction, width, fillers, control, line ends, tags."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
async def play(tmp_path: Path, project: Path) -> AsyncIterator[Callable[..., App]]:
    apps: list[App] = []

    def make(*lines: dict[str, Any]) -> App:
        apps.append(make_app(tmp_path, *lines))
        return apps[-1]

    yield make
    for app in apps:
        await app.aclose()


def spelled(text: str) -> None:
    for char in HIDDEN:
        assert char not in text
        assert f"\\u{ord(char):04x}" in text


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("git/commit", {"message": f"Fix{HIDDEN} it"}),
        ("shell/run", {"command": "cat", "stdin": f"a{HIDDEN}b"}),
        ("files/write", {"path": "a.txt", "content": f"a{HIDDEN.replace(chr(0x2028), '')}b\u2028\n"}),
    ],
)
async def test_a_card_spells_out_what_cannot_be_seen(
    play: Callable[..., App], tool: str, args: dict[str, Any]
) -> None:
    app, watch = play({"calls": [{"tool": tool, "args": args}]}, {"text": "Done."}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    spelled(asked.preview)
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "reject_once")
    await task


async def test_a_question_and_its_choices_spell_out_what_cannot_be_seen(play: Callable[..., App]) -> None:
    question = {"question": f"Shall I{HIDDEN}?", "choices": [f"yes{HIDDEN}", "no"]}
    app, watch = play({"calls": [{"tool": "user/ask", "args": question}]}, {"text": "Done."}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("input_asked")).event
    assert isinstance(asked, InputAsked)
    spelled(asked.question)
    spelled(asked.choices[0])
    await app.runs.answer(watch.chunks[0].run, asked.input_id, "no")
    await task
