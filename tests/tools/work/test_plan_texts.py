"""What a model proposes as a plan is read by a person: nothing in it is invisible or moves their terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.tools.work.plan import ProposeArgs, StepArgs

TEXTS = st.text(st.sampled_from("ab \n計\x00\x1b[]31m;\x07\x7f\x9b\u200b\u202e"), max_size=40)


@given(text=TEXTS)
def test_no_text_of_a_proposed_plan_holds_control_characters(text: str) -> None:
    step = StepArgs(name=text, description=text, acceptance=(text,))
    plan = ProposeArgs(goal=text, name=text, focus=text, summary=text, steps=(step,))
    shown = (plan.goal, plan.name, plan.focus, plan.summary, step.name, step.description, *step.acceptance)
    assert all(char.isprintable() or char in "\n\t" for each in shown for char in each)


def test_escapes_go_and_what_they_stand_around_stays() -> None:
    assert StepArgs(name="a\x00\x1b[31mb\x1b[0m").name == "ab"
