"""The catalogue of sentences: whole in every language, and used as it is written."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import daiku
from daiku.domain.base import Localizable
from daiku.domain.chunks import decode_event, encode_event
from daiku.domain.errors import Failure
from daiku.domain.events import HandoffEnd, InputAsked, Notice
from daiku.team.table import ALL_AGENTS
from daiku.texts.text import (
    ENGLISH,
    Text,
    joined,
    language_of,
    languages,
    render,
    renderings,
    sentences,
    text,
)
from daiku.tools.table import collect_faces
from tests.cases import for_each

PACKAGE = Path(daiku.__file__).parent
HOLE = re.compile(r"\{(\w+)\}")
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
IN_THE_CODE = {ENGLISH, "ja"}
"""Labels stand in both languages with what they name; in others they are in the catalogue."""
SAME = {"join.clauses", "join.lines", "join.list", "join.paragraphs", "join.sentences"}
"""Separators, and what has no words in it, need no Japanese letters."""


def parsed(holding: str) -> Iterator[tuple[Path, ast.AST]]:
    """The nodes of every file of the server in whose text `holding` stands, each with its file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if holding in (source := path.read_text("utf-8")):
            yield from ((path, node) for node in ast.walk(ast.parse(source)))


def calls() -> Iterator[tuple[str, str, set[str] | None]]:
    """Every `text("key", name=…)` of the server: where, its key, its arguments (None: not known here)."""
    for path, node in parsed("text("):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        keys = [n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)]
        given = {k.arg for k in node.keywords if k.arg}
        for key in keys if node.func.id == "text" else ():
            where = f"{path.relative_to(PACKAGE)}:{node.lineno}"
            yield where, str(key), None if any(k.arg is None for k in node.keywords) else given


def test_every_sentence_that_is_said_is_in_the_catalogue_with_its_arguments() -> None:
    english = sentences(ENGLISH)
    wrong = [
        f"{where}: {key}({sorted(given or ())}) for {english.get(key)!r}"
        for where, key, given in calls()
        if key not in english or (given is not None and set(HOLE.findall(english[key])) != given)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_sentence_of_the_catalogue_is_left_unsaid() -> None:
    sources = (*PACKAGE.rglob("*.py"), PACKAGE / "guard/rules/protected/names.json")
    code = "\n".join(path.read_text("utf-8") for path in sources)
    keys = (key for key in sentences(ENGLISH) if not key.startswith(("terminal.", "join.")))
    unsaid = [key for key in keys if f'"{key}"' not in code and f"'{key}'" not in code]
    assert not unsaid, unsaid


def labels() -> dict[str, str]:
    """Every `Label(english, japanese)` of the server's code, by the id that it has in a further language."""
    found: dict[str, str] = {}
    for path, node in parsed("Label("):
        match node:
            case ast.Call(func=ast.Name(id="Label"), args=[english, _]):
                assert isinstance(english, ast.Constant), f"{path}:{node.lineno}: not written out"
                found[f"label.{english.value}"] = str(english.value)
            case _:
                pass
    return found


def test_every_tool_and_agent_has_its_label_in_the_code() -> None:
    shown = [face.label for face in collect_faces().values()] + [agent.label for agent in ALL_AGENTS.values()]
    assert {f"label.{label.en}" for label in shown} < set(labels())


@for_each("language", sorted(languages() - {ENGLISH}))
def test_every_language_has_every_sentence_with_the_same_holes(language: str) -> None:
    further = {} if language in IN_THE_CODE else labels()
    english, other = {**sentences(ENGLISH), **further}, sentences(language)
    assert set(english) == set(other), f"add to or take out of {language}.json: {set(english) ^ set(other)}"
    assert [k for k in english if sorted(HOLE.findall(english[k])) != sorted(HOLE.findall(other[k]))] == []


def test_japanese_sentences_are_japanese() -> None:
    plain = [k for k, said in sentences("ja").items() if not JAPANESE.search(said) and k not in SAME]
    english = sentences(ENGLISH)
    assert [k for k in plain if re.search(r"[A-Za-z]{4,} [A-Za-z]{2,}", HOLE.sub("", english[k]))] == []


@for_each("language", sorted(languages()))
def test_a_file_of_sentences_is_sorted_and_says_nothing_twice(language: str) -> None:
    pairs = json.loads((PACKAGE / "texts" / f"{language}.json").read_text("utf-8"), object_pairs_hook=list)
    keys = [key for key, _ in pairs]
    assert keys == sorted(set(keys))


@for_each("locale", ["ja", "ja_JP.UTF-8", "JA-jp"])
def test_a_locale_of_japan_is_read_as_japanese(locale: str) -> None:
    assert language_of(locale) == "ja"


@for_each("locale", ["de-DE", "", "C.UTF-8", "en_GB", "jav"])
def test_a_locale_without_sentences_of_its_own_is_read_as_english(locale: str) -> None:
    assert language_of(locale) == ENGLISH


def test_a_sentence_is_english_to_a_program_and_a_value_to_a_front() -> None:
    said = text("terminal.lines", count="3")
    assert said == "3 lines"
    assert render(said, "ja") == "3 行"
    assert renderings(said) >= {"3 lines", "3 行"}
    assert render(joined("sentences", [said, Text("Foo.")]), "ja") == "3 行Foo."


def test_japanese_stands_beside_japanese_without_a_blank() -> None:
    home = text("commands.would_remove", what=text("commands.your_home"))
    assert render(home, "ja") == "あなたのホームフォルダーが削除されます"
    assert render(text("commands.would_remove", what="/etc"), "ja") == "/etc が削除されます"


def test_values_survive_the_journal_wherever_they_stand() -> None:
    said = text("terminal.lines", count="3")
    nested = joined("clauses", [said, Text("x")])
    asked = InputAsked(input_id="i", question=nested, choices=(Text("plain"), said))
    ended = HandoffEnd.model_validate(
        {"from": "a", "to": "b", "result": "", "error": Failure(kind="usage", message=said)}
    )
    for event in (asked, ended, Notice(level="info", text=said)):
        read = decode_event(event.type, encode_event(event))
        assert read == event
        assert encode_event(read) == encode_event(event)
        assert '"texts":' in encode_event(read)
        assert isinstance(read, Localizable)
        told = encode_event(read.in_language("ja"))
        assert "行" in told
        assert '"texts":' not in told


def test_a_journal_of_another_version_is_read_in_english() -> None:
    stored = '{"level":"info","text":"Gone.","texts":{"text":{"id":"no.such","args":{"what":{"id":"nor.this","args":{}}}}}}'
    read = decode_event("notice", stored)
    assert isinstance(read, Notice)
    assert read.in_language("ja").text == "Gone."
