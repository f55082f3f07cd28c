"""Characters that hide or reorder text are escapes on the screen, wherever a model, a tool or a file puts them."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.events import ApprovalAsked, Delta, Edit, Event, InputAsked, MessageEvent, Notice, PlanEvent
from daiku.domain.held import Todo, TodoItem
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.ask.approvals import ask_approval, ask_question
from daiku.fronts.cli.display.show import Show
from daiku.fronts.cli.display.term import Terminal, safe
from daiku.texts.text import Text
from tests.cases import for_each
from tests.cli.display.test_show import called, responded, seen

BAD = "\u202e\u2066\u200b\u2060\u00ad\ufeff\u2028\u3164\U000e0041\U000e0020\U0001d173"
TRICK = "a" + "b".join(BAD) + "c"
DIFF = f"--- a/{TRICK}\n+++ b/{TRICK}\n@@ -1 +1 @@\n-one\n+{TRICK}\n"
FAMILY = "\U0001f468\u200d\U0001f469 \u2764\ufe0f \u0645\u06cc\u200c\u062e \u845b\U000e0100"
"""Emoji, Persian and a variant of an ideograph: their joiners and selectors belong to them."""


@for_each(
    ("events",),
    [
        ((called("1", "shell/run", command=TRICK), responded("1", "shell/run", TRICK)),),
        ((called("1", "files/read", path=TRICK), responded("1", "files/read", TRICK, ok=False)),),
        ((called("1", "mcp/x/y", name=TRICK), responded("1", "mcp/x/y", TRICK)),),
        (
            (
                Edit(
                    call_id="",
                    checkpoint_id="c",
                    files=(FileStat(path=TRICK, kind="edit", added=1, removed=1),),
                    diff=DIFF,
                ),
            ),
        ),
        ((Delta(text=TRICK), MessageEvent(role="assistant", text=Text(TRICK))),),
        ((MessageEvent(role="assistant", text=Text(TRICK)),),),
        ((Notice(level="warning", text=Text(TRICK)),),),
        ((PlanEvent(plan=Plan(name=TRICK, goal=TRICK, steps=(Step(name=TRICK),))),),),
        ((Todo(items=(TodoItem(title=TRICK, status="pending"),)),),),
    ],
)
def test_no_event_prints_a_hidden_character(events: tuple[Event, ...]) -> None:
    """A23.8"""
    shown = "\n".join(seen(*events))
    assert not set(BAD) & set(shown)
    assert "\\u202e" in shown


@pytest.mark.parametrize("preview", [TRICK, DIFF])
async def test_no_question_prints_a_hidden_character(preview: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.8: also one of a session whose questions were recorded raw. The arguments of the call stay as they are."""

    async def read_key() -> str:
        return "y"

    async def read_line() -> str:
        return "1"

    monkeypatch.setattr(keyboard, "read_key", read_key)
    monkeypatch.setattr(keyboard, "read_line", read_line)
    stream = io.StringIO()
    people = Terminal(stream, live=False, colours=False)
    asked = ApprovalAsked(
        approval_id="a", kind="command", tool="shell/run", args={"command": TRICK}, preview=Text(preview),
        why=Text(TRICK), call_id="1", remember=Text(TRICK),
    )  # fmt: skip
    assert (await ask_approval(asked, Show(people), people)).decision == "allow_once"
    question = InputAsked(input_id="i", question=Text(TRICK), choices=(Text(TRICK),), call_id="1")
    assert await ask_question(question, Show(people), people) == TRICK
    assert not set(BAD) & set(stream.getvalue())
    assert asked.args == {"command": TRICK}


@given(st.lists(st.integers(0, len(FAMILY)), max_size=6))
def test_a_stream_keeps_what_belongs_to_scripts_and_emoji(cuts: list[int]) -> None:
    """A23.8: wherever the pieces of a stream begin and end."""
    places = sorted({0, len(FAMILY), *cuts})
    pieces = [FAMILY[start:end] for start, end in pairwise(places)]
    shown = seen(*(Delta(text=piece) for piece in pieces), MessageEvent(role="assistant", text=Text(FAMILY)))
    assert shown == [FAMILY]


def test_controls_keep_their_short_escapes() -> None:
    """A23.8: line ends of Windows are line ends."""
    assert safe("a\x1b[2K\r\nb\rc\td\ud800") == "a\\x1b[2K\nb\\x0dc\td\\ud800"
