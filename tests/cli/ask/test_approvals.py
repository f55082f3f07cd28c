"""Questions of a run in the terminal: what is typed is the answer."""

from __future__ import annotations

import asyncio
import io

import pytest

from daiku.domain.events import InputAsked
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.ask.approvals import ask_question
from daiku.fronts.cli.display.show import Show
from daiku.fronts.cli.display.term import Terminal
from daiku.texts.text import Text
from tests.cases import for_each


@for_each(
    ("typed", "answer"),
    [
        ("1", "red"),
        ("2", "green"),
        ("3", "blue"),
        ("0", "0"),
        ("4", "4"),
        (" 3 \n", "blue"),
        ("grey", "grey"),
    ],
)
def test_every_choice_has_its_number_and_anything_else_is_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch, typed: str, answer: str
) -> None:
    async def read_line() -> str:
        return typed

    monkeypatch.setattr(keyboard, "read_line", read_line)
    people = Terminal(io.StringIO(), live=False, colours=False)
    asked = InputAsked(
        input_id="i",
        call_id="c",
        question=Text("Which colour?"),
        choices=tuple(map(Text, ("red", "green", "blue"))),
    )
    assert asyncio.run(ask_question(asked, Show(people), people)) == answer
