"""Researcher's and runner's forms: read as they are meant, in two languages; what is wrong is told in the form's words."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from daiku.models.rules.replies.parse import SEVERAL, Unreadable
from daiku.models.rules.replies.roleforms import (
    CommandsReply,
    QueriesReply,
    RepairReply,
    read_commands,
    read_queries,
    read_repair,
)
from tests.cases import for_each

AB = CommandsReply(("a", "b"))


@for_each(
    "reply",
    [
        '{"commands": ["a", "b"]}',
        '```json\n{"commands": ["a", "b"]}\n```',
        'Run: {"commands": ["a", "b"]} now.',
        '実行します。\n{"commands": ["a", "b"]}\n以上です。',
        '{"commands": ["a", " ", "b"]}',
        '{"commands": ["a", "b"]} I mean {"commands": ["a", "b"]}',
    ],
)
def test_commands_are_understood_in_many_shapes(reply: str) -> None:
    assert read_commands(reply) == AB


@for_each("reply", ['{"commands": "a && b"}', '{"command": "a && b"}'])
def test_one_command_may_stand_alone(reply: str) -> None:
    assert read_commands(reply) == CommandsReply(("a && b",))


@for_each(
    "reply",
    ['{"queries": ["a", "b"], "ask_user": "c?"}', '```json\n{"queries": ["a", "b"], "ask_user": "c?"}\n```'],
)
def test_queries_are_understood_in_many_shapes(reply: str) -> None:
    assert read_queries(reply) == QueriesReply(("a", "b"), "c?")


def test_more_than_three_queries_are_cut_to_three() -> None:
    assert read_queries('{"queries": ["a", "b", "c", "d"], "ask_user": ""}') == QueriesReply(
        ("a", "b", "c"), ""
    )


def test_a_missing_question_is_none_and_is_known_to_be_missing() -> None:
    assert read_queries('{"queries": ["a"]}') == QueriesReply(("a",), "", whole=False)
    assert read_queries('{"queries": [], "ask_user": null}') == QueriesReply((), "")


@for_each(
    ("reply", "wanted"),
    [
        ('{"action": "stop", "reason": "No."}', RepairReply("stop", reason="No.")),
        ('{"command": "a"}', RepairReply("command", "a")),
        ('{"action": "command", "command": "a", "retry": "true"}', RepairReply("command", "a", retry=True)),
        ('{"action": "command", "command": "a", "why": "x"}', RepairReply("command", "a")),
        ('{"action": "patch"}\n\nx.json\n```\n{"action": "stop"}\n```', RepairReply("patch")),
    ],
)
def test_repairs_are_understood(reply: str, wanted: RepairReply) -> None:
    assert read_repair(reply) == wanted


READERS: dict[str, Callable[[str], object]] = {
    "queries": read_queries,
    "commands": read_commands,
    "action": read_repair,
}


@for_each(
    ("key", "reply", "problem"),
    [
        ("commands", "{}", '"commands" is missing'),
        ("commands", '{"commands": 3}', '"commands" must be a list'),
        ("commands", '{"commands": null}', '"commands" must be a list'),
        ("commands", '{"commands": ["a", 1]}', 'item 2 of "commands" must be a string'),
        ("commands", '{"commands": [{"x": "a"}]}', 'item 1 of "commands" must be a string'),
        ("commands", "[]", "there are no"),
        ("queries", '{"ask_user": ""}', '"queries" is missing'),
        ("queries", '{"queries": "a", "ask_user": ""}', '"queries" must be a list'),
        ("queries", '{"queries": [1], "ask_user": ""}', 'item 1 of "queries"'),
        ("queries", '{"queries": [], "ask_user": 1}', '"ask_user" must be a string'),
        ("action", '{"action": "dance"}', '"action" must be "command", "patch" or "stop"'),
        ("action", '{"action": "command", "command": [1]}', '"command" must be a string'),
    ],
)
def test_what_is_wrong_is_told_in_the_forms_own_words(key: str, reply: str, problem: str) -> None:
    found = READERS[key](reply)
    assert isinstance(found, Unreadable)
    assert problem in found.problem or reply == "[]"
    for word in ("tuple", "input", "field required", "extra", "pydantic", "valid string"):
        assert word not in found.problem.lower()


@for_each(
    "reply",
    [
        'First {"commands": ["a"]}, then {"commands": ["b"]}.',
        'For example {"commands": ["rm -rf x"]} would be wrong. So: {"commands": ["b"]}',
        '{"commands": ["a"]}\n{"commands": ["b"]}',
        '```json\n{"commands": ["a"]}\n```\n```json\n{"commands": ["b"]}\n```',
        'Entwurf:\n```json\n{"commands": ["a"]}\n```\nBesser:\n```json\n{"commands": ["b"]}\n```',
    ],
)
def test_different_objects_are_asked_about_and_none_is_run(reply: str) -> None:
    found = read_commands(reply)
    assert isinstance(found, Unreadable)
    assert found.problem == SEVERAL


@for_each("reply", ["All is well.", "See `a[0]` and { x: 1 }.", "問題ありません。", "Use [] or {}."])
@for_each("key", READERS)
def test_words_without_the_form_are_known_as_words(key: str, reply: str) -> None:
    found = READERS[key](reply)
    assert isinstance(found, Unreadable)
    assert found.words_only


@for_each("key", READERS)
def test_a_broken_form_and_silence_are_no_words(key: str) -> None:
    for reply in (f'{{"{key}": [', f'I do {{"{key}" : 7}}', "", " \n", "{", f"```json\n{{'{key}': "):
        found = READERS[key](reply)
        assert isinstance(found, Unreadable)
        assert not found.words_only, reply


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5),
    st.sampled_from(["", "実行します。", "I run these.\n"]),
    st.booleans(),
)
def test_whatever_the_commands_are_they_come_back_as_they_are(
    commands: list[str], before: str, fence: bool
) -> None:
    form = json.dumps({"commands": commands}, ensure_ascii=False)
    found = read_commands(before + (f"```json\n{form}\n```" if fence else form))
    clean = tuple(c.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for c in commands)
    assert found == CommandsReply(clean)
