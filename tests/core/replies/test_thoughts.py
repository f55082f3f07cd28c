"""What a model only thinks is no answer: told apart in whole replies and in streams cut anywhere."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.models.rules.replies.thoughts import SplitReply, ThoughtPiece, ThoughtSplitter, split_thoughts
from tests.cases import for_each
from tests.timing import cpu_seconds

PAIRS = [
    ("<think>", "</think>"),
    ("<Think>", "</THINK>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]  # fmt: skip
THOUGHT = 'Maybe {"commands": ["touch x"]}?\n```\n- [ ] Step 1: no\nFile: `a.py`:'
HARMONY_CALL = "<|start|>assistant<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>"
ANSWER = "All is fine.\n\n```html\n<think>\n</think>\n```\nUse `<think>` or a <think> mark."


def streamed(pieces: list[str]) -> SplitReply:
    """What a consumer of the stream has in the end."""
    splitter, answer, thought = ThoughtSplitter(), "", ""
    for piece in (p for text in pieces for p in splitter.feed(text)):
        answer, thought = after(piece, answer, thought)
    for piece in splitter.close():
        answer, thought = after(piece, answer, thought)
    return SplitReply(answer, thought)


def after(piece: ThoughtPiece, answer: str, thought: str) -> tuple[str, str]:
    match piece.kind:
        case "answer":
            return answer + piece.text, thought
        case "thought":
            return answer, thought + piece.text
        case "void":
            return "", thought + piece.text


def in_every_cut(reply: str) -> set[SplitReply]:
    """What comes of a reply whole, letter by letter, and cut in two at every place."""
    ways = [[reply], list(reply), *([reply[:at], reply[at:]] for at in range(len(reply)))]
    return {streamed(way) for way in ways} | {split_thoughts(reply)}


@for_each(("opener", "closer"), PAIRS)
@for_each("before", ["", "\n\n  "])
def test_a_thought_before_the_answer_is_no_answer(opener: str, closer: str, before: str) -> None:
    reply = f"{before}{opener}\n{THOUGHT}\n{closer}\n\n{ANSWER}"
    assert in_every_cut(reply) == {SplitReply(ANSWER, THOUGHT)}


@for_each(("opener", "closer"), PAIRS)
def test_a_thought_between_two_parts_of_an_answer_is_taken_out(opener: str, closer: str) -> None:
    reply = f"Let me look.\n{opener}{THOUGHT}{closer}\nDone."
    assert in_every_cut(reply) == {SplitReply("Let me look.\n\nDone.", THOUGHT)}


@for_each(("opener", "closer"), PAIRS)
def test_a_thought_that_is_not_closed_is_all_thought(opener: str, closer: str) -> None:
    assert in_every_cut(f"{opener}{THOUGHT}") == {SplitReply("", THOUGHT)}


@for_each("closer", sorted({closer for _, closer in PAIRS if closer.startswith(("</", "[/", "◁"))}))
@for_each("form", ["{}\n{}\n\n{}", "{}{}\n{}", "{}\n{}{}"])
def test_a_closing_mark_alone_makes_a_thought_of_what_came_before(closer: str, form: str) -> None:
    thought = 'I could {"command": "rm x"}.\n```sh\nls\n```\nBut no.'
    assert in_every_cut(form.format(thought, closer, ANSWER)) == {SplitReply(ANSWER, thought)}
    assert in_every_cut(f"{closer}\n\n{ANSWER}") == {SplitReply(ANSWER, "")}


@for_each(
    ("reply", "answer", "thought"),
    [
        ("<think>\n\n</think>\n\nHi", "Hi", ""),
        ("<think>one</think><think>two</think>Hi", "Hi", "one\n\ntwo"),
        ("<think>A `</think>` ends it.\n</think>\nHi", "Hi", "A `</think>` ends it."),
        ("<think>A </think> ends it.\n</think>\nHi", "Hi", "A\n\nends it."),
        ("<think>half", "", "half"),
        ("<think>", "", ""),
        ("thought\n</think>", "", "thought"),
        ("<|channel|>final<|message|>Hi<|return|>", "Hi", ""),
        ("<|channel|>final <|constrain|>json<|message|>{}\n<|return|>", "{}\n", ""),
        ("<|channel|>commentary<|message|>I look.<|end|>", "I look.", ""),
        (f"<|channel|>analysis<|message|>hm<|end|>{HARMONY_CALL}", HARMONY_CALL, "hm"),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi<|END_RESPONSE|>", "Hi", "hm"),
    ],
)
def test_marks_around_thoughts_and_answers(reply: str, answer: str, thought: str) -> None:
    assert in_every_cut(reply) == {SplitReply(answer, thought)}


@for_each(
    "reply",
    [
        "",
        "  \n ",
        "Plain.",
        "  indented\n\tcode < more [1] `x` ~ y",
        "The mark <think> opens and </think> closes it.",
        "It ends with </think>",
        "`</think>`\n",
        "> <think>quoted</think>",
        "```\n<think>\nx\n</think>\n```",
        "~~~~md\n```\n<think>\n```\n~~~\n</think>\n~~~~\nend",
        "See:\n~~~md `a` and `b`\n<think>\n~~~\nend",
        "```xml\n<think>\nnever closed",
        "<thinker>\n<think\nx",
        "<html>\n[1]\n[thinks]\n</html>",
        "<tool_call>\n<function=files/write>\n<parameter=content>\n<think>\nx\n</think>\n</parameter>\n</function>\n</tool_call>",
        '[{"operation": "x", "args": {"content": "a\\n<think>\\n"}}]',
        "<|channel|>commentary to=functions.a<|message|>{}<|call|>",
        "<|start|>functions.a to=assistant<|channel|>commentary<|message|>1<|end|>",
        "<|channel|> is a mark",
    ],
)
def test_text_without_thoughts_stays_as_it_is(reply: str) -> None:
    assert in_every_cut(reply) == {SplitReply(reply, "")}


def test_a_fence_within_one_line_opens_no_block() -> None:
    assert in_every_cut("```x``` y\n<think>a</think>b") == {SplitReply("```x``` y\nb", "a")}


def test_words_are_told_as_soon_as_they_are_said() -> None:
    splitter = ThoughtSplitter()
    assert list(splitter.feed("<think>\nI wonder")) == [ThoughtPiece("thought", "I wonder")]
    assert list(splitter.feed(" why")) == [ThoughtPiece("thought", " why")]
    assert list(splitter.feed("\n</think>\n\nBecause")) == [ThoughtPiece("answer", "Because")]
    assert list(splitter.feed(" a < b")) == [ThoughtPiece("answer", " a < b")]


parts = st.lists(
    st.sampled_from(
        [*(mark for pair in PAIRS for mark in pair), "<|start|>assistant", "<|call|>", "to=functions.x", "\n", "\n\n",
         " ", "`", "```", "~~~~", "word", "<", "[", "<tool_call>", "</tool_call>", "<parameter=x>", "é", "\r\n"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(parts, st.lists(st.integers(0, 200), max_size=8))
def test_what_is_told_does_not_depend_on_how_the_reply_was_cut(reply: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(reply)) for cut in cuts), len(reply)]
    pieces = [reply[a:b] for a, b in itertools.pairwise(places)]
    assert streamed(pieces) == streamed([reply]) == streamed(list(reply)) == split_thoughts(reply)


@pytest.mark.slow  # it measures time
def test_a_long_reply_costs_no_more_than_its_length() -> None:
    for reply in (
        "<a [b `c` ~\n" * 50_000,
        "<think>" + "</thin\n" * 80_000,
        "<" * 300_000,
        "```\n" * 100_000,
    ):
        assert cpu_seconds(partial(split_thoughts, reply)) < 3
