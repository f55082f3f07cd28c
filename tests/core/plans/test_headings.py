"""A plan's heads are known in English and Japanese, whatever stands around them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.models.rules.replies.parse import Unreadable
from daiku.team.rules.plans.reply import is_machine_like, parse_plan_head, read_plan, strip_control_characters
from tests.cases import for_each

HEADS = {
    "project": ("Project Name", "プロジェクト名", "プロジェクト"),
    "reply": ("Your Reply to the Human Prompter", "返答", "ご返答", "回答", "返信"),
    "focus": ("Current Focus", "現在の焦点", "焦点", "重点"),
    "plans": ("Plan", "Revised plan", "計画", "プラン", "修正した計画"),
    "summary": ("Summary", "要約", "まとめ", "概要"),
}
NAMED = [(key, name) for key, names in HEADS.items() for name in names]
SHAPES = (
    "{}: x",
    "{}：x",
    "**{}:** x",
    "## {}: x",
    "「{}」：x",
    "【{}】: x",
    "■{}: x",
    "- {}: x",
    "> {}： x",
)
BARE = ("## {}", "### {}", "**{}:**", "【{}】", "{}：", "## **{}**")


@for_each(("key", "name"), NAMED)
def test_a_head_is_known_in_every_shape(key: str, name: str) -> None:
    for shape in SHAPES:
        assert parse_plan_head(shape.format(name)) == (key, "x"), shape
    for shape in BARE:
        assert parse_plan_head(shape.format(name)) == (key, ""), shape


@for_each(
    "line",
    ["", "Plan the work", "計画を立てます", "概要", "Planning: x", "The plan: x", "計画はこうです: x", "- [ ] Step 1: Plan it",
     "x = 1  # plan: none", "要約すると: x"],
)  # fmt: skip
def test_other_lines_are_no_heads(line: str) -> None:
    assert parse_plan_head(line) is None


def lines(names: dict[str, str], shape: str, steps: str = "- [ ] Step 1: a\n- [ ] Step 2: b") -> str:
    parts = {"project": "p", "reply": "r", "focus": "f", "plans": "", "summary": "s"}
    said = (
        shape.format(names[key]).removesuffix("x") + (f"\n{steps}" if key == "plans" else what)
        for key, what in parts.items()
    )
    return "\n\n".join(said)


@given(
    st.fixed_dictionaries({key: st.sampled_from(names) for key, names in HEADS.items()}),
    st.sampled_from(SHAPES),
)
def test_a_plan_in_either_language_and_any_shape_is_read(names: dict[str, str], shape: str) -> None:
    plan = read_plan(lines(names, shape))
    assert not isinstance(plan, Unreadable), plan
    assert (plan.project, plan.reply, plan.focus, plan.summary) == ("p", "r", "f", "s")
    assert len(plan.plans) == 2


def test_of_two_plans_the_revised_one_counts() -> None:
    english = {key: names[0] for key, names in HEADS.items()}
    first, second = lines(english, "{}: x"), lines(english, "{}: x", "- [ ] Step 1: c")
    for text in (
        f"{first}\n\nWait, simpler:\n\n{second}",
        f"{first}\n\nRevised plan:\n- [ ] Step 1: c",
        f"{first}\n\n修正した計画：\n- [ ] ステップ1：c",
    ):
        plan = read_plan(text)
        assert not isinstance(plan, Unreadable), plan
        assert [step.rpartition("：")[2].rpartition(": ")[2] for step in plan.plans] == ["c"]
    again = read_plan(f"{first}\n\nPlan:\nas above")
    assert not isinstance(again, Unreadable)
    assert len(again.plans) == 2, "a second head without steps takes nothing away"


@for_each(
    ("text", "machine"),
    [
        ("As an AI language model, I will", True),
        ("As an artificial intelligence, I", True),
        ("**As a large language model**", True),
        ("I am an AI", True),
        ("I'm just an AI", True),
        ("As your AI assistant", True),
        ("AIとして、お手伝いします", True),
        ("私はAIです", True),
        ("人工知能として", True),
        ("大規模言語モデルとして", True),
        ("AIアシスタントとして", True),
        ("Sure.", False),
        ("As an aid", False),
        ("As an AI-free build", False),
        ("AIチャットを作ります", False),
        ("承知しました。AIとして", False),
    ],
)
def test_a_reply_that_begins_like_a_machines_is_known(text: str, machine: bool) -> None:
    assert is_machine_like(text) is machine


@given(st.text(st.sampled_from("ab \n\t計\x00\x1b[]31m;\x07\x7f\x9b\u200b\u202e"), max_size=60))
def test_nothing_invisible_stays(text: str) -> None:
    kept = strip_control_characters(text)
    assert all(char.isprintable() or char in "\n\t" for char in kept)
    assert strip_control_characters(kept) == kept or "[" in kept


def test_names_of_steps_hold_no_control_characters() -> None:
    english = {key: names[0] for key, names in HEADS.items()}
    plan = read_plan(lines(english, "{}: x", "- [ ] Step 1: a\x00\x1b[31mb\x1b[0m"))
    assert not isinstance(plan, Unreadable)
    assert plan.plans[0].endswith("ab")
    coded = '{"project": "p\\u0000", "reply": "r", "focus": "f", "plans": ["a\\u001b[1mb"], "summary": "s"}'
    plan = read_plan(coded)
    assert not isinstance(plan, Unreadable)
    assert (plan.project, plan.plans) == ("p", ("ab",))
