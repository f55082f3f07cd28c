"""What the Reflector and the Curator are asked, word for word, and how their replies are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

from daiku.domain.held import Lesson, Reflection
from daiku.run.rules.outside import FoundLesson
from daiku.team.drafting.run_reflection import (
    LONGEST_INSIGHT,
    MOST_INSIGHTS,
    MOST_OPERATIONS,
    CurationForm,
    ReflectionForm,
    build_curation_request,
    build_reflection_request,
    parse_operations,
    parse_reflection,
)
from tests.cases import for_each

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
TOLD = (
    Lesson(id="batc-00001", version=1, text="Run the tests with make check."),
    Lesson(id="env-00001", version=2, text="Start the database first.\nIt takes a while."),
)
KNOWN = tuple(FoundLesson(each, "environment", 1.0) for each in TOLD)
RECORD = "The person asked: run the tests\nshell/run failed: Exit code 2.\n~~~~\nThe run ended: completed"
BEFORE = Reflection(reasoning="It failed.", insights=("Use make check.",))


def compare(name: str, parts: dict[str, str]) -> None:
    text = "\n\n".join(f"==== {title}\n{part}" for title, part in parts.items()) + "\n"
    golden = GOLDEN / f"{name}.request.txt"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"


def test_what_the_reflector_is_asked_is_what_is_on_record() -> None:
    compare(
        "reflector",
        {
            "A first look": build_reflection_request(RECORD, TOLD, ("batc-00001",), None),
            "A second look": build_reflection_request(RECORD, (), (), BEFORE),
        },
    )


def test_what_the_curator_is_asked_is_what_is_on_record() -> None:
    compare(
        "curator",
        {
            "With lessons": build_curation_request(("Use make check.", "Start the\ndatabase."), KNOWN),
            "Without": build_curation_request(("Use make check.",), ()),
        },
    )


def reflected(**said: object) -> Reflection:
    return parse_reflection(ReflectionForm.model_validate_json(json.dumps(said)), TOLD)


def test_a_reply_is_kept_within_bounds() -> None:
    many = reflected(reasoning="x" * 50_000, insights=[f"{n} " + "y" * 9_000 for n in range(50)])
    assert len(many.insights) == MOST_INSIGHTS
    assert max(map(len, many.insights)) == LONGEST_INSIGHT
    assert len(many.reasoning) < 5_000


@for_each(
    ("said", "insights"),
    [
        ({"insights": ["A.", "A.", " ", "B."]}, ("A.", "B.")),
        ({"key_insight": "A."}, ("A.",)),
        ({"key_insight": "A.", "insights": []}, ()),
        ({}, ()),
        ({"something": "else", "insights": ["A."]}, ("A.",)),
    ],
)
def test_the_insights_are_those_that_are_listed_and_without_a_list_the_key_one(
    said: dict[str, object], insights: tuple[str, ...]
) -> None:
    """B3.3, and the form of PROTOCOL 9, which has no key insight."""
    assert reflected(**said).insights == insights


def test_only_lessons_that_the_run_was_told_are_judged() -> None:
    tags = [{"id": "batc-00001", "tag": "helpful"}, {"id": "zzz-00009", "tag": "harmful"}]
    assert [(each.id, each.tag) for each in reflected(tags=tags).tags] == [("batc-00001", "helpful")]


def test_operations_name_lessons_that_the_curator_was_shown_or_add_one() -> None:
    """B3.4."""
    form = CurationForm.model_validate_json(
        json.dumps(
            {
                "operations": [
                    {"type": "UPDATE", "id": "batc-00001", "content": "Run make check twice."},
                    {"type": "UPDATE", "id": "zzz-00009", "content": "New.", "section": "environment"},
                    {"type": "ADD", "content": " "},
                    {"type": "MERGE", "ids": ["batc-00001", "env-00001", "zzz-00009"]},
                    {"type": "MERGE", "ids": ["batc-00001", "batc-00001"]},
                    {"type": "REMOVE", "id": "env-00001"},
                    {"type": "REMOVE", "id": "zzz-00009"},
                ]
            }
        )
    )
    assert [(each.type, each.id, each.ids) for each in parse_operations(form, KNOWN)] == [
        ("UPDATE", "batc-00001", ()),
        ("ADD", "", ()),
        ("MERGE", "", ("batc-00001", "env-00001")),
        ("REMOVE", "env-00001", ()),
    ]
    many = CurationForm.model_validate_json(
        json.dumps({"operations": [{"type": "ADD", "content": f"{n}."} for n in range(99)]})
    )
    assert len(parse_operations(many, ())) == MOST_OPERATIONS
