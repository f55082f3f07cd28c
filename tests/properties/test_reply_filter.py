"""What is shown of a streamed reply does not depend on where it was cut, nor on which deltas were looked at closely."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from daiku.domain.messages import (
    AssistantMessage,
    ModelEvent,
    Reply,
    Restarted,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from daiku.models.reply_filter import ReplyFilter
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.models.rules.textcalls.parsed_calls import OfferedTools
from daiku.texts.text import Text
from tests.cases import for_each
from tests.core.textcalls.callforms import TOOLS, C

PARTS = st.sampled_from(
    [
        "some words ", "a", " ", "\n", "\n\n", "  ", "`", "``", "```\n", "```py\n", "~~~\n", "<", "</", "[", "[/", "]", "{", "}",
        "a[0] ", "<think>", "</think>", "[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|channel|>analysis<|message|>", "<|end|>",
        "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|", "<div>", "Action: ", "previous_output", "A", "[x](y) ", "if a < b:", C,
        '{"comment": "hi"}', '{"actions": [', "<files_read>", "functools[", "だいく", "\r\n",
    ]
)  # fmt: skip


def heard(pieces: Iterable[str], *, own: bool, closely: bool) -> tuple[str, str]:
    """The text and the thoughts that are shown of a reply in the end."""
    text, thought = "", ""
    reply_filter = ReplyFilter(lambda: HumanText(OfferedTools(TOOLS), text_protocol=own))
    whole = "".join(pieces := list(pieces))
    events: list[ModelEvent] = [
        *map(TextDelta, pieces),
        Reply(AssistantMessage(text=Text(whole)), Usage(), "stop"),
    ]
    for event in events:
        passes = not closely and isinstance(event, TextDelta) and reply_filter.passes(event.text)
        for told in [event] if passes else reply_filter.events_of(event):
            match told:
                case TextDelta(more):
                    text += more
                case ThinkingDelta(more):
                    thought += more
                case Restarted():
                    text = ""
                case Reply():
                    pass
    return text, thought


@example(parts=[" ", "<tool_call>"], cuts=[7], own=False)
@example(parts=["a", "\n", " ", "<|", "[TOOL_CALLS]"], cuts=[4], own=True)
@given(parts=st.lists(PARTS, max_size=25), cuts=st.lists(st.integers(0, 400), max_size=25), own=st.booleans())
def test_what_is_shown_is_the_same_however_a_reply_is_cut(
    parts: list[str], cuts: list[int], own: bool
) -> None:
    whole = "".join(parts)
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    expected = heard([whole], own=own, closely=True)
    assert heard(pieces, own=own, closely=True) == expected
    assert heard(pieces, own=own, closely=False) == expected
    assert heard(whole, own=own, closely=False) == expected


@for_each("said", [HumanText, None])
def test_words_within_a_line_pass_without_a_closer_look(said: type[HumanText] | None) -> None:
    reply_filter = ReplyFilter(said)
    said_in_all = "Here is what `f` does: it calls a[0], {b} and (c) ~ once.\nThen it ends, as it should."
    words = said_in_all.split(" ")
    passed = 0
    for word in words:
        if reply_filter.passes(f"{word} "):
            passed += 1
        else:
            assert "".join(
                e.text for e in reply_filter.events_of(TextDelta(f"{word} ")) if isinstance(e, TextDelta)
            )
    assert passed == len(words) - 2  # the first of a line each
