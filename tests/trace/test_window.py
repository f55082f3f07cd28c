"""A long session is shown by its end; what lies before comes piece by piece, and nothing is lost or told twice."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    Event,
    HandoffStart,
    MessageEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Todo, TodoItem
from daiku.domain.messages import Usage
from daiku.domain.tools import ToolCall
from daiku.texts.text import Text
from daiku.trace.journal import Journal
from tests.cases import examples
from tests.trace.begun import begun


def told(journal: Journal, turns: list[int], session: str = "") -> str:
    """A session (or more of one) of a run for each of `turns`, with so many calls; every third run hands over."""
    session = session or begun(journal)
    writer = journal.writer(session)
    for number, calls in enumerate(turns):
        run = f"run_{number}"
        events: list[tuple[str, str | None, Event]] = [(run, None, RunStarted(prompt=f"do {number}"))]
        for n in range(calls):
            call = ToolCall(id=f"{run}:{n}", tool="files/read", args={"path": "a"})
            events += [
                (run, None, MessageEvent(role="assistant", text=Text(""), calls=(call,))),
                (run, None, Usage(model="m", prompt_tokens=10, completion_tokens=1, cost=0.5)),
                (run, None, ToolCallEvent(id=call.id, tool=call.tool, args=call.args)),
            ]
            if number % 3 == 2:
                start = HandoffStart.model_validate({"from": "a", "to": "b", "request": "r", "run": "x"})
                inner = MessageEvent(role="assistant", text=Text("inside"))
                events += [(run, None, start), (f"{run}:x", run, inner)]
            events.append((run, None, ToolResponse(id=call.id, tool=call.tool, ok=True, result="text")))
        events += [
            (run, None, MessageEvent(role="assistant", text=Text("done"))),
            (run, None, RunFinished(status="completed")),
        ]
        for (one, parent), together in groupby(events, key=lambda e: e[:2]):
            writer.write(one, parent, "coordinator", [event for _, _, event in together])
    return session


def pieces(journal: Journal, session: str, last: int) -> list[tuple[list[Chunk], int, Usage]]:
    found: list[tuple[list[Chunk], int, Usage]] = []
    before = 0
    while True:
        chunks, window = journal.window(session, before_seq=before, last=last)
        found.append((chunks, window.earlier, window.usage))
        if not window.earlier:
            return found
        before = window.first_seq


@settings(max_examples=examples(30), deadline=None)
@given(turns=st.lists(st.integers(0, 8), min_size=1, max_size=8), last=st.integers(1, 40))
def test_the_windows_of_a_session_are_the_session(
    tmp_path_factory: pytest.TempPathFactory, turns: list[int], last: int
) -> None:
    journal = Journal(tmp_path_factory.mktemp("w") / "daiku.db")
    session = told(journal, turns)
    whole = journal.chunks(session)
    found = pieces(journal, session, last)
    assert sorted({c.seq for chunks, _, _ in found for c in chunks}) == [c.seq for c in whole]
    for chunks, earlier, usage in found:
        seqs = [c.seq for c in chunks]
        assert seqs == sorted(set(seqs))
        called = {c.event.id for c in chunks if isinstance(c.event, ToolCallEvent)}
        answered = {c.event.id for c in chunks if isinstance(c.event, ToolResponse)}
        assert called == answered, "no call is cut off from its result"
        assert isinstance(chunks[0].event, RunStarted), "the run that a window begins in is known"
        spent = [c.event for c in whole[:earlier] if isinstance(c.event, Usage)]
        assert usage.prompt_tokens == 10 * len(spent)
        assert (usage.cost or 0) == 0.5 * len(spent)
    journal.close()


def test_a_window_reads_no_more_than_it_shows(journal: Journal) -> None:
    session = told(journal, [3] * 400)
    chunks, window = journal.window(session, last=50)
    assert 50 <= len(chunks) < 80
    assert window.earlier + len(chunks) >= len(journal.chunks(session))


def test_a_short_session_is_there_as_a_whole(journal: Journal) -> None:
    session = told(journal, [1])
    chunks, window = journal.window(session, last=600)
    assert (len(chunks), window.earlier) == (len(journal.chunks(session)), 0)


def test_the_last_todo_list_comes_with_a_window_that_begins_behind_it(journal: Journal) -> None:
    session = told(journal, [2])
    todo = Todo(items=(TodoItem(title="Mend it"),))
    journal.writer(session).write("run_todo", None, "coordinator", (todo,))
    told(journal, [3] * 60, session)
    chunks, _ = journal.window(session, last=20)
    assert [c.event for c in chunks if isinstance(c.event, Todo)] == [todo]
