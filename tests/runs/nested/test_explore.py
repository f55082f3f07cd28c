"""Explorers answer questions about the code: at once, read-only, bounded; the asking window gets the answers alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.events import HandoffEnd, HandoffStart, RunFinished, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.messages import Usage
from daiku.domain.runs import Mode, RunLimits
from daiku.run.nested import briefing
from daiku.run.nested.taskloop import MAX_ROUNDS, MAX_WORDS
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.services import RunServices
from daiku.texts.rules.words import limit_words
from tests.agents.acting import app_with, in_protocol
from tests.cases import for_each
from tests.conftest import ROOT
from tests.runs.playing import Watch, make_app
from tests.services.web import local_web

Json = dict[str, Any]
EXPLORER = "now you explore"
PRICE, TOTAL = "Where is the price made?", "Who calls total()?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text("def price(net):\n    return net * 1.2\n")
    return tmp_path


def ask(*questions: str) -> Json:
    return {"calls": [{"tool": "agent/explore", "args": {"questions": list(questions)}}], "when": "go"}


def look(path: str = "shop.py", **more: Any) -> Json:
    return {"calls": [{"tool": "files/read", "args": {"path": path}}], "agent": EXPLORER, **more}


def answer(text: str, when: str = "def price") -> Json:
    return {"text": text, "agent": EXPLORER, "when": when}


def explored(watch: Watch) -> ToolResponse:
    """What the asking run was told."""
    return next(e for c in watch.chunks if c.parent is None and isinstance(e := c.event, ToolResponse))


async def run(app: App, mode: Mode = "act", **more: Any) -> tuple[Any, Watch]:
    watch = Watch()
    try:
        result = await app.runs.run(RunRequest("go", mode=mode, **more), watch)
        assert (await replay(app.journal.chunks(result.session_id))).difference is None
    finally:
        await app.aclose()
    return result, watch


@pytest.mark.parametrize("mode", ["ask", "plan", "act"])
async def test_its_answer_comes_back_in_every_mode_and_nothing_else_of_its_work(
    folder: Path, mode: Mode
) -> None:
    app = make_app(
        folder,
        ask(PRICE),
        look(when="Where is"),
        answer("In shop.py:1."),
        {"text": "Told.", "when": "shop.py:1"},
    )
    result, watch = await run(app, mode, approvals="none")
    unplanned = "completed_unverified" if mode == "plan" else "completed"
    assert (result.status, result.text) == (unplanned, "Told.")
    told = explored(watch)
    assert (told.ok, told.result, told.untrusted) == (True, "In shop.py:1.", False)
    nested = [c for c in watch.chunks if c.parent is not None]
    assert {c.agent for c in nested} == {"explorer"}
    assert [c.event.tool for c in nested if isinstance(c.event, ToolCallEvent)] == ["files/read"]


@pytest.mark.parametrize("protocol", ["action_list", "command"])
async def test_a_model_without_tools_of_its_own_explores_too(folder: Path, protocol: str) -> None:
    words = {"command": '{"done": true, "comment": "In shop.py:1."}'}
    explore = in_protocol(protocol, "agent/explore", {"questions": [PRICE]})
    app = app_with(
        folder,
        {**explore, "when": "go"},
        {**in_protocol(protocol, "files/read", {"path": "shop.py"}), "agent": EXPLORER},
        {"text": words.get(protocol, "In shop.py:1."), "agent": EXPLORER},
        {"text": words.get(protocol, "In shop.py:1.")},
        protocol=protocol,
    )
    _, watch = await run(app)
    assert (explored(watch).ok, explored(watch).result) == (True, "In shop.py:1.")


async def test_several_questions_are_worked_on_at_once_and_answered_in_order(folder: Path) -> None:
    app = make_app(
        folder,
        ask(PRICE, TOTAL),
        look(when=PRICE, delay_ms=20, text="I look at the price."),
        answer("In shop.py:1."),
        look("none.py", when=TOTAL),
        answer("Nobody does.", when="no file none.py"),
        {"text": "Told.", "when": "Nobody does."},
    )
    result, watch = await run(app)
    assert result.text == "Told."
    assert explored(watch).result == f"1. {PRICE}\nIn shop.py:1.\n\n2. {TOTAL}\nNobody does."
    begun = [n for n, c in enumerate(watch.chunks) if isinstance(c.event, RunStarted) and c.parent]
    ended = [n for n, c in enumerate(watch.chunks) if isinstance(c.event, RunFinished) and c.parent]
    assert max(begun) < min(ended), "both were under way at the same time"
    starts = [c.event for c in watch.chunks if isinstance(c.event, HandoffStart)]
    assert [(s.to, s.request) for s in starts] == [("explorer", PRICE), ("explorer", TOTAL)]


async def test_questions_begin_in_their_order_also_where_the_lessons_of_the_first_come_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = asyncio.Event()

    async def recall(services: RunServices, question: str, *more: Any) -> tuple[tuple[()], tuple[()]]:
        if question == PRICE:
            await second.wait()
        else:
            second.set()
        return (), ()

    monkeypatch.setattr(briefing, "recall_lessons", recall)
    app = make_app(folder, ask(PRICE, TOTAL), answer("In shop.py:1.", PRICE), answer("Nobody does.", TOTAL))
    _, watch = await run(app)
    starts = [c.event for c in watch.chunks if isinstance(c.event, HandoffStart)]
    assert [s.request for s in starts] == [PRICE, TOTAL]


async def test_one_that_fails_is_told_and_the_others_stand(folder: Path) -> None:
    app = make_app(
        folder,
        ask(PRICE, TOTAL),
        {"error": {"kind": "auth", "message": "The key is wrong."}, "agent": EXPLORER, "when": PRICE},
        {"text": "Nobody does.", "agent": EXPLORER, "when": TOTAL},
        {"text": "Told.", "when": "Nobody does."},
    )
    result, watch = await run(app)
    assert result.status == "completed"
    told = explored(watch)
    assert told.ok
    assert told.result == f"1. {PRICE}\nNo answer: The key is wrong.\n\n2. {TOTAL}\nNobody does."


async def test_where_all_fail_the_call_has_failed(folder: Path) -> None:
    wrong = {"error": {"kind": "auth", "message": "The key is wrong."}, "agent": EXPLORER, "when": PRICE}
    result, watch = await run(make_app(folder, ask(PRICE), wrong, {"text": "Told.", "when": "No answer"}))
    assert (result.status, explored(watch).ok) == ("completed", False)


async def test_it_ends_with_what_it_has_when_its_replies_run_out(folder: Path) -> None:
    for n in range(40):
        (folder / "project" / f"f{n}.py").write_text(f"x = {n}\n")
    looks = [look(f"f{n}.py") for n in range(MAX_ROUNDS - 1)]
    app = make_app(
        folder,
        ask(PRICE),
        *looks,
        answer("So far: not in f0.py to f23.py.", when="last reply"),
        {"text": "Told.", "when": "So far"},
    )
    result, watch = await run(app)
    assert (result.status, result.text) == ("completed", "Told.")
    told = explored(watch)
    assert told.ok
    assert told.result.startswith("So far: not in f0.py to f23.py.\n(It was not done: ")
    [back] = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    assert (back.status, back.rounds) == ("limit", MAX_ROUNDS)


async def test_an_explorer_gets_half_of_what_is_left_of_the_whole_runs_limit(folder: Path) -> None:
    looks = [look(f"none{n}.py") for n in range(2)]
    app = make_app(folder, ask(PRICE), *looks, answer("I ran out.", when="last reply"), {"text": "Told."})
    result, watch = await run(app, limits=RunLimits(max_rounds=8, max_tool_errors=0))
    assert explored(watch).result.startswith("I ran out.")
    assert sum(isinstance(c.event, Usage) for c in watch.chunks) == 1 + 3 + 1, (
        "half of seven for the explorer"
    )
    assert result.text == "Told."


async def test_four_explorers_at_once_get_half_of_what_is_left_together(folder: Path) -> None:
    questions = [f"Question {n}?" for n in range(4)]
    endless = [
        {**look("shop.py"), "calls": [{"tool": "search/text", "args": {"pattern": f"p{n}"}}]}
        for n in range(200)
    ]
    told = {"text": "Told.", "when": "1. Question 0?"}
    app = make_app(folder, ask(*questions), *endless, told)
    result, watch = await run(app, limits=RunLimits(max_rounds=41, max_tool_errors=0, max_repeats=0))
    backs = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    assert [back.rounds for back in backs] == [5] * 4, "half of the forty that are left"
    assert result.text == "Told."


async def test_one_that_goes_round_in_circles_hands_back_what_it_said_and_where_it_looked(
    folder: Path,
) -> None:
    again = look(text="price() is in shop.py, I check who calls it.")
    app = make_app(folder, ask(PRICE), *[again] * 10, {"text": "Told."})
    _, watch = await run(app)
    told = explored(watch)
    assert told.ok
    assert told.result.startswith(
        "price() is in shop.py, I check who calls it.\n\nIt looked at:\n- files__read"
    )
    assert told.result.count('path: "shop.py"') == 1
    assert "(It was not done: " in told.result


async def test_one_that_fails_hands_back_where_it_looked(folder: Path) -> None:
    wrong = {
        "error": {"kind": "auth", "message": "The key is wrong."},
        "agent": EXPLORER,
        "when": "def price",
    }
    _, watch = await run(make_app(folder, ask(PRICE), look(), wrong, {"text": "Told."}))
    told = explored(watch)
    assert (told.ok, told.result) == (
        False,
        'No answer: The key is wrong.\nIt looked at:\n- files__read path: "shop.py"',
    )


async def test_its_answer_is_cut_after_a_thousand_words(folder: Path) -> None:
    long = " ".join(f"word{n}" for n in range(3000))
    app = make_app(folder, ask(PRICE), {"text": long, "agent": EXPLORER, "when": PRICE}, {"text": "Told."})
    _, watch = await run(app)
    told = explored(watch).result
    assert len(told.split()) < MAX_WORDS + 20
    assert "cut off after 1000 words" in told


@for_each(
    ("text", "most", "shown"),
    [
        ("a b c", 3, "a b c"),
        ("a b c d", 3, "a b c\n[… cut off after 3 words: 2 characters are missing …]"),
        ("", 3, ""),
        ("あ" * 30, 3, "あ" * 24 + "\n[… cut off after 3 words: 6 characters are missing …]"),
    ],
)
def test_a_text_is_cut_to_words(text: str, most: int, shown: str) -> None:
    assert limit_words(text, most) == shown


async def test_it_can_change_and_run_nothing(folder: Path) -> None:
    writes = {"tool": "files/write", "args": {"path": "x", "content": "y"}}
    runs = {"tool": "shell/run", "args": {"command": "touch y"}}
    more = {"tool": "agent/explore", "args": {"questions": ["deeper"]}}
    app = make_app(
        folder,
        ask(PRICE),
        {"calls": [writes, runs, more], "agent": EXPLORER, "when": PRICE},
        {"text": "I could not.", "agent": EXPLORER},
        {"text": "Told."},
    )
    _, watch = await run(app, approvals="all")
    inside = [c.event for c in watch.chunks if c.parent is not None and isinstance(c.event, ToolResponse)]
    assert [e.ok for e in inside] == [False] * 3
    assert [p.name for p in (folder / "project").iterdir()] == ["shop.py"]


async def test_what_was_told_by_strangers_makes_its_answer_untrusted(folder: Path) -> None:
    lines: tuple[Json, ...] = (
        {"calls": [{"tool": "web/search", "args": {"query": "what"}}], "when": "go"},
        {**ask(PRICE), "when": "First"},
        {"text": "In shop.py:1.", "agent": EXPLORER},
        {"text": "Told."},
    )
    async with local_web() as web:
        web.links = [("https://a.example.com/one", "First")]
        app = app_with(folder, *lines, research={"engine": "searxng", "base_url": web.url("")})
        _, watch = await run(app, approvals="all")
    told = [e for c in watch.chunks if isinstance(e := c.event, ToolResponse)]
    assert [(e.tool, e.untrusted) for e in told] == [("web/search", True), ("agent/explore", True)]


async def test_a_cancelled_run_cancels_them(folder: Path) -> None:
    slow = {"text": "word " * 400, "delay_ms": 50, "agent": EXPLORER}
    app = make_app(folder, ask(PRICE, TOTAL), slow)
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    async with asyncio.timeout(20):
        while sum(c.type == "run_started" for c in watch.chunks) < 3:
            await asyncio.sleep(0.01)
    await app.runs.cancel(watch.chunks[0].run)
    assert (await task).status == "cancelled"
    backs = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    assert [back.status for back in backs] == ["cancelled"] * 2
    await app.aclose()


async def test_after_a_pause_only_what_was_not_answered_goes_on(folder: Path) -> None:
    lines = (
        ask(PRICE, TOTAL),
        {"text": "In shop.py:1.", "agent": EXPLORER, "when": PRICE},
        look(when=TOTAL),
        answer("Nobody does."),
        {"text": "Told.", "when": "Nobody does."},
    )
    first, watch = make_app(folder, *lines), Watch()

    def listen(chunk: Any) -> None:
        watch(chunk)
        if isinstance(chunk.event, ToolResponse) and chunk.parent is not None:
            first.runs._live[watch.chunks[0].run].pause()

    begun = await first.runs.run(RunRequest("go"), listen)
    await first.aclose()
    assert begun.status == "paused"
    second, again = make_app(folder, *lines), Watch()
    result = await second.runs.resume(begun.run_id, again)
    await second.aclose()
    assert (result.status, result.text) == ("completed", "Told.")
    assert explored(again).result == f"1. {PRICE}\nIn shop.py:1.\n\n2. {TOTAL}\nNobody does."
    assert not any(c.parent and c.type == "run_started" for c in again.chunks)


async def test_the_asking_window_stays_several_times_smaller(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    searches: list[Json] = [
        {"tool": "search/text", "args": {"query": query}}
        for query in ("def verdict", "parse_arguments", "tainted")
    ]
    reads: list[Json] = [
        {"tool": "files/read", "args": {"path": path}}
        for path in (
            "guard/rules/guard.py",
            "run/rules/calls/arguments.py",
            "run/rules/decide.py",
            "run/rules/state/fold.py",
        )
    ]
    found = (
        "The verdict is made in guard/rules/guard.py; arguments are parsed in run/rules/calls/arguments.py:47. "
        * 30
    )
    server = ROOT / "server" / "daiku"

    async def window(*lines: Json) -> int:
        app = make_app(tmp_path, *lines, project=server, home=tmp_path / "home")
        result, watch = await run(app)
        assert result.text == "Told."
        own = [c.event for c in watch.chunks if c.parent is None and isinstance(c.event, Usage)]
        return own[-1].prompt_tokens - own[0].prompt_tokens

    without = await window({"calls": searches}, {"calls": reads}, {"text": "Told."})
    explorer = ({"calls": searches, "agent": EXPLORER}, {"calls": reads, "agent": EXPLORER})
    with_one = await window(ask(PRICE), *explorer, {"text": found, "agent": EXPLORER}, {"text": "Told."})
    assert with_one * 10 <= without, f"grew by {without} tokens without an explorer, by {with_one} with one"
