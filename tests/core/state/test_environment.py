"""The environment in the conversation: whole once, later what has changed, and beside every summary the newest."""

from __future__ import annotations

from daiku.domain.events import MessageEvent, Notice, RunFinished, RunStarted
from daiku.domain.held import Compacted
from daiku.domain.messages import UserMessage
from daiku.domain.runs import EnvironmentFact
from daiku.run.rules.state.context import user_messages
from daiku.run.rules.state.environment import nested_facts
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.texts.text import Text


def facts(**known: str) -> tuple[EnvironmentFact, ...]:
    return tuple(EnvironmentFact(name=name, text=text) for name, text in known.items())


ACT, PLAN = facts(Date="Sunday", Mode="act. Do it."), facts(Date="Sunday", Mode="plan. Look.")
DONE = (MessageEvent(role="assistant", text=Text("Done.")), RunFinished(status="completed"))


def last_words(state: State) -> str:
    message = state.conversation.messages[-1]
    assert isinstance(message, UserMessage)
    return message.text


def test_the_first_run_is_told_all_of_it_before_the_request() -> None:
    state = fold([RunStarted(prompt="Mend it", environment=ACT)])
    assert last_words(state) == "<environment>\nDate: Sunday\nMode: act. Do it.\n</environment>\n\nMend it"


def test_a_later_run_is_told_what_has_changed_and_nothing_where_nothing_has() -> None:
    first = [RunStarted(prompt="Mend it", environment=ACT), *DONE]
    same = fold([*first, RunStarted(prompt="More", environment=ACT)])
    assert last_words(same) == "More"
    other = fold([*first, RunStarted(prompt="More", environment=PLAN)])
    assert last_words(other) == (
        "<environment>\nChanged since you were last told:\nMode: plan. Look.\n</environment>\n\nMore"
    )


def test_what_was_said_before_stays_as_it_was_when_the_mode_changes() -> None:
    first = [RunStarted(prompt="Mend it", environment=ACT), *DONE]
    before = fold(first).conversation.messages
    after = fold([*first, RunStarted(prompt="More", environment=PLAN)]).conversation.messages
    assert after[: len(before)] == before


def test_a_run_without_any_changes_nothing_of_what_is_known() -> None:
    calls = [RunStarted(prompt="Mend it", environment=ACT), *DONE, RunStarted(prompt="Run it"), *DONE]
    again = fold([*calls, RunStarted(prompt="More", environment=ACT)])
    assert last_words(again) == "More"


def test_a_run_that_is_gone_on_with_is_told_what_changed_meanwhile() -> None:
    news = Notice(level="info", text=Text("…"), environment=facts(Date="Monday", Mode="act. Do it."))
    state = fold([RunStarted(prompt="Mend it", environment=ACT), news])
    assert "Date: Monday" in last_words(state)
    assert "Mode" not in last_words(state)
    assert fold([news], state).conversation.messages == state.conversation.messages


def test_beside_a_summary_stands_the_newest_of_all() -> None:
    told = [RunStarted(prompt="Mend it", environment=ACT), *DONE, RunStarted(prompt="Plan", environment=PLAN)]
    state = fold([*told, Compacted(summary="They talked.", kept=0)])
    assert last_words(state).startswith("<environment>\nDate: Sunday\nMode: plan. Look.\n</environment>\n\n")
    again = fold([*DONE, RunStarted(prompt="Go", environment=ACT)], state)
    assert "Mode: act" in last_words(again)
    assert "Date" not in last_words(again)


def test_the_environment_is_no_word_of_the_person() -> None:
    first = [RunStarted(prompt="Mend it", environment=ACT), *DONE]
    assert user_messages(fold([*first, RunStarted(prompt="More", environment=PLAN)])) == ("More", "Mend it")


def test_a_nested_run_is_told_what_holds_for_it() -> None:
    known = facts(
        Date="Sunday", Folder="/a", Git="clean", Editor="open files: x", Mode="act. Do it.", Tools="t"
    )
    assert nested_facts(known, "act") == facts(Date="Sunday", Folder="/a", Git="clean")
    assert nested_facts(known, "act", "/copy") == facts(Date="Sunday", Folder="/copy")
    assert [f.text for f in nested_facts(known, "ask") if f.name == "Mode"] == [
        "ask. You only read: changes of files and commands are refused."
    ]
