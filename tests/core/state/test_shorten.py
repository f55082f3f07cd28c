"""Which old results are shortened, and to what: superseded ones, by order of what happened; the newest stay whole."""

from __future__ import annotations

from typing import Any

from daiku.domain.events import Event, MessageEvent, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.held import Pruned, ShortenedResult
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from daiku.domain.tools import Effect, ToolCall
from daiku.run.rules.state.condense import (
    ContextWindow,
    Reading,
    cut_newest,
    file_lists,
    find_keep_start,
    is_full,
    plan_condensing,
    replace_results,
    shorten_old,
    shorten_superseded,
)
from daiku.run.rules.state.context import rough_tokens
from daiku.run.rules.state.fold import apply, fold
from daiku.run.rules.state.state import State
from daiku.texts.text import Text

EFFECTS: dict[str, Effect] = {
    "files/read": "read",
    "files/list": "read",
    "search/text": "read",
    "files/edit": "edit",
    "files/patch": "edit",
    "shell/run": "command",
    "agent/explore": "none",
}
READING = Reading(lambda call: call, EFFECTS.get)
LONG = "a line of what was found\n" * 40


def turn(id_: str, tool: str, text: str = LONG, *, ok: bool = True, **args: Any) -> tuple[Message, Message]:
    made = ToolCall(id=id_, tool=tool, args=args)
    code = (0 if ok else 1) if tool == "shell/run" else None
    return AssistantMessage(calls=(made,)), ToolMessage(
        call_id=id_, tool=tool, ok=ok, text=text, exit_code=code
    )


def read(id_: str, path: str = "a.py", **args: Any) -> tuple[Message, Message]:
    return turn(id_, "files/read", path=path, **args)


def gone(*turns: tuple[Message, ...]) -> dict[str, str]:
    """What is put in place of results that others supersede, by call, of a conversation all of which is old."""
    messages = [UserMessage(text="go"), *(m for each in turns for m in each)]
    return {each.call_id: each.text for each in shorten_superseded(messages, len(messages), READING)}


def test_a_file_that_was_read_again_or_changed_since_is_one_line() -> None:
    assert list(gone(read("1"), read("2"))) == ["1"]
    assert "read again" in gone(read("1"), read("2"))["1"]
    assert "files__read" in gone(read("1"), read("2"))["1"]
    found = gone(read("1"), turn("2", "files/edit", "Changed.", path="./a.py", edits=[]))
    assert list(found) == ["1"]
    assert "a.py was changed since" in found["1"]
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    assert list(gone(read("1"), turn("2", "files/patch", "Changed.", patch=patch))) == ["1"]


def test_what_is_still_true_stays() -> None:
    assert not gone(read("1"), read("2", "b.py"))
    assert not gone(read("1"), turn("2", "files/edit", "No match.", ok=False, path="a.py"))
    assert not gone(turn("2", "files/edit", "Changed.", path="a.py"), read("1"))
    assert not gone(read("1"), read("2", start_line=3, end_line=9)), "a part is not the whole"
    assert list(gone(read("1", start_line=3, end_line=9), read("2"))) == ["1"]
    assert not gone(turn("1", "shell/run", command="pytest"), turn("2", "shell/run", command="pytest -x"))
    assert not gone(turn("1", "files/read", "short", path="a.py"), read("2")), "a line would save nothing"


def test_a_command_that_ran_again_keeps_its_exit_code_and_what_failed() -> None:
    failing = f"Exit code 1\n{LONG}FAILED tests/test_a.py::test_sum\n{LONG}"
    found = gone(
        turn("1", "shell/run", failing, ok=False, command="pytest"), turn("2", "shell/run", command="pytest")
    )
    assert list(found) == ["1"]
    assert "exit code 1" in found["1"]
    assert found["1"].endswith("\nFAILED tests/test_a.py::test_sum")


def test_listings_and_searches_are_gone_when_they_are_old_and_nothing_in_the_kept_part_is() -> None:
    looks = [*turn("1", "search/text", pattern="x"), *turn("2", "files/list")]
    assert [each.call_id for each in shorten_superseded(looks, 4, READING)] == ["1", "2"]
    assert [each.call_id for each in shorten_superseded(looks, 2, READING)] == ["1"]
    twice = [*read("1"), *read("2")]
    assert not shorten_superseded(twice, 0, READING)


def test_of_what_no_call_gives_again_the_ends_stay() -> None:
    told = [*turn("1", "agent/explore", "It begins in app.py:3.\n" + LONG + "It ends in till.py:9.")]
    assert not shorten_superseded(told, 2, READING)
    (found,) = shorten_old(told, 2, READING)
    assert found.text.startswith("It begins in app.py:3.")
    assert found.text.endswith("It ends in till.py:9.")


def test_the_newest_results_of_a_huge_reply_stay_whole() -> None:
    calls = tuple(ToolCall(id=str(n), tool="files/read", args={"path": f"{n}.py"}) for n in range(5))
    results = [ToolMessage(call_id=str(n), tool="files/read", ok=True, text=LONG * 4) for n in range(5)]
    messages = [UserMessage(text="go"), AssistantMessage(calls=calls), *results]
    assert find_keep_start(messages, 100, rough_tokens) == 1
    cut = cut_newest(messages, 1, 2200, rough_tokens, READING)
    assert [each.call_id for each in cut] == ["0", "1", "2"]
    alone = cut_newest(messages, 1, 100, rough_tokens, READING)
    after = replace_results(messages, alone)
    assert "left out here" in after[-1].text, "of one that alone is too long the ends are kept"
    assert after[-1].text.startswith("a line of what was found")


def test_what_fits_no_result_changes_nothing() -> None:
    messages = [UserMessage(text="go"), *read("1")]
    wrong = [
        ShortenedResult(at=at, call_id=id_, text="x") for at, id_ in ((0, "1"), (9, "1"), (-1, "1"), (2, "2"))
    ]
    assert replace_results(messages, wrong) == tuple(messages)


def events_of(count: int) -> list[Event]:
    events: list[Event] = [RunStarted(prompt="go")]
    for n in range(count):
        made = ToolCall(id=str(n), tool="files/read", args={"path": "a.py"})
        said = MessageEvent(role="assistant", text=Text(""), calls=(made,))
        called = ToolCallEvent(id=str(n), tool=made.tool, args=made.args)
        events += [said, Usage(prompt_tokens=100 + 300 * n), called]
        events.append(ToolResponse(id=str(n), tool=made.tool, ok=True, outcome="done", result=Text(LONG)))
    return events


def window(limit: int, counted: list[int] | None = None) -> ContextWindow:
    def tokens(messages: Any) -> int:
        if counted is not None:
            counted.append(len(messages))
        return rough_tokens(messages)

    return ContextWindow(limit, lambda: 50, tokens, READING)


def test_only_what_came_since_the_last_reply_is_counted_and_only_near_the_limit() -> None:
    state = fold(events_of(20))
    counted: list[int] = []
    assert not is_full(state.conversation, window(50_000, counted))
    assert not counted, "far from the limit no text is looked at"
    assert is_full(state.conversation, window(6_000, counted))
    assert counted == [1]


def test_a_run_of_rereads_is_shortened_without_a_summary_and_folds_the_same() -> None:
    state = fold(events_of(20))
    how = plan_condensing(state, window(5_500))
    assert how is not None
    assert how.kept is None
    assert how.pruned is not None
    after = apply(state, how.pruned)
    assert after.conversation.tokens == how.pruned.after_tokens < how.pruned.before_tokens
    assert len(after.conversation.messages) == len(state.conversation.messages)
    assert not is_full(after.conversation, window(5_500))
    again = Pruned.model_validate_json(how.pruned.model_dump_json(by_alias=True))
    assert apply(state, again) == after


def test_nothing_is_done_where_nothing_is_won() -> None:
    state = fold(events_of(1))
    assert plan_condensing(state, window(100)) is None or state.conversation.messages
    tiny = fold([RunStarted(prompt="x")])
    assert plan_condensing(tiny, window(1)) is None
    assert plan_condensing(tiny, window(0), refused=True) is None
    assert not is_full(tiny.conversation, window(0))


def test_the_files_of_what_is_replaced_are_named_and_those_of_earlier_summaries_stay() -> None:
    messages = (
        UserMessage(text="go"),
        *read("1", "./b.py"),
        *turn("2", "files/edit", "Changed.", path="c.py"),
        *read("3", "c.py"),
    )
    conversation = State().conversation._replace(
        messages=messages, files_read=("a.py", "c.py"), files_changed=("z.py",)
    )
    state = State(conversation=conversation)
    assert file_lists(state, len(messages), READING) == (("a.py", "b.py"), ("z.py", "c.py"))
    assert file_lists(state, 3, READING) == (("a.py", "c.py", "b.py"), ("z.py",))
