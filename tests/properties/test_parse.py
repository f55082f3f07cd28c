"""Whatever a model writes: reading never fails by accident, finds what is there, and streams alike."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from daiku.domain.messages import AssistantMessage
from daiku.models.rules.replies.parse import Unreadable, parse_partial_json, read_json
from daiku.models.rules.textcalls.codecs import FormatProblem, decode
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.team.rules.plans.reply import read_plan
from daiku.texts.text import Text

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
prose = text.map(lambda t: t.replace("{", "(").replace("[", "(").replace("```", "'").replace("~~~", "-"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, values, min_size=1, max_size=4).map(lambda d: {"marked": True, **d})
fragments = st.lists(
    st.sampled_from(
        ['{"comment": "', '"', "}", "{", "[", "]", "```json\n", "```", "\n", "~~~\n", '"actions": [', '"command": {',
         '{"operation": "x"}', ", ", ": ", "a", " ", "\\", "\\u12", "\\ud83d", "'", '{"done": true', "あ"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


def marked(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict) or "marked" not in value:
        raise ValueError("not marked")
    return value


@given(
    objects,
    prose,
    prose,
    st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```", "\n{}\n"]),
    st.booleans(),
)
def test_an_object_in_any_prose_is_found(
    value: JsonValue, before: str, after: str, frame: str, pretty: bool
) -> None:
    written = json.dumps(value, ensure_ascii=False, indent=2 if pretty else None)
    reply = f"{before}\n{frame.replace('{}', written)}\n{after}"
    assert read_json(reply, marked) == value


@given(fragments | st.text(max_size=200))
def test_reading_anything_gives_a_value_or_a_reason(reply: str) -> None:
    found = read_plan(reply)
    assert not isinstance(found, Unreadable) or found.problem
    for protocol in ("action_list", "command"):
        for finish in ("stop", "length"):
            said = decode(AssistantMessage(text=Text(reply)), protocol, finish=finish)
            assert not isinstance(said, FormatProblem) or said.problem
    parse_partial_json(reply)


@given(fragments, st.lists(st.integers(0, 200), max_size=8))
def test_what_is_shown_does_not_depend_on_how_the_reply_was_cut(reply: str, cuts: list[int]) -> None:
    whole = HumanText()
    expected = whole.feed(reply)
    places = [0, *sorted(min(c, len(reply)) for c in cuts), len(reply)]
    pieces = HumanText()
    shown = "".join(pieces.feed(reply[a:b]) for a, b in itertools.pairwise(places))
    assert shown == expected


@given(text)
def test_a_comment_is_shown_as_it_was_meant(comment: str) -> None:
    for ascii_only in (True, False):
        reply = json.dumps({"comment": comment, "actions": []}, ensure_ascii=ascii_only)
        read = decode(AssistantMessage(text=Text(reply)), "action_list")
        assert isinstance(read, AssistantMessage)
        assert read.text == comment.strip()


@given(prose)
def test_prose_is_shown_unchanged(reply: str) -> None:
    said = HumanText()
    assert said.feed(reply) + said.unshown_text(reply) == reply


@given(objects, st.integers(1, 200))
def test_unfinished_arguments_never_show_what_is_not_there(value: dict[str, JsonValue], cut: int) -> None:
    seen = parse_partial_json(json.dumps(value)[:cut])
    assert seen is None or (isinstance(seen, dict) and set(seen) <= set(value))
