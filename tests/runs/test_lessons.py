"""Lessons in runs: told when a run begins, to nested runs too, once in a session; and none stops a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.dataclass import replace
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import HandoffEnd, Notice, RunFinished, RunStarted
from daiku.domain.held import Lesson
from daiku.domain.runs import ApprovalMode
from daiku.run import recalling
from daiku.run.recorded.history import events_of
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.outside import FoundLesson
from daiku.run.rules.state.fold import fold
from daiku.run.runs import Runs
from daiku.texts.text import Text
from tests.playbook.told import Held, bullet, playbooks
from tests.runs.playing import Watch, make_app, shell

TESTS = bullet("bat-00001", "run the tests with make check")
MINE = bullet("mypc-00001", "greet in the tests by name")
GREET = bullet("pac-00007", "say hi by echo")


def told_app(folder: Path, *lines: dict[str, Any], advice: object = None) -> App:
    """An App whose runs are told of these bullets, or by `advice`."""
    (folder / "project").mkdir(exist_ok=True)
    app = make_app(folder, *lines)
    known = advice or playbooks(Held(TESTS, GREET), Held(MINE))
    return replace(app, runs=Runs(replace(app.runs.services, playbooks=known)))


def started(watch: Watch) -> list[RunStarted]:
    return [chunk.event for chunk in watch.chunks if isinstance(chunk.event, RunStarted)]


def ids(lessons: tuple[Lesson, ...]) -> list[str]:
    return [each.id for each in lessons]


async def test_a_run_is_told_the_lessons_that_fit_and_what_it_cites_is_on_record(tmp_path: Path) -> None:
    """R3.2, R3.27, C3.5: what was retrieved and what was used of it stand in the journal."""
    app = told_app(tmp_path, {"text": "By [bat-00001] I ran make check. [pac-00007]"})
    watch = Watch()
    result = await app.runs.run(RunRequest("run the tests"), watch)
    (start,) = started(watch)
    assert ids(start.lessons) == ["bat-00001", "mypc-00001"]
    chunks = app.journal.chunks(result.session_id)
    finished = next(c.event for c in chunks if isinstance(c.event, RunFinished))
    assert finished.used_bullets == ("bat-00001",), "pac-00007 was not told"
    told = fold(events_of(chunks)).conversation.messages[0].text
    assert told.startswith("<playbook>")
    assert TESTS.content in told
    assert (await replay(chunks)).difference is None
    await app.aclose()


async def test_a_run_whose_request_brings_its_lessons_is_told_no_others(tmp_path: Path) -> None:
    """C3.5: those of the Generator stand in its prompt, and on record beside it."""
    app = told_app(tmp_path, {"text": "by [pac-00007]"})
    watch = Watch()
    brought = (Lesson(id=GREET.id, version=2, text=GREET.content),)
    told = f"Known:\n[{GREET.id}] {GREET.content}\nTask: run the tests"
    result = await app.runs.run(
        RunRequest("run the tests", agent="generator", mode="ask", told=told, lessons=brought), watch
    )
    assert started(watch)[0].lessons == brought
    chunks = app.journal.chunks(result.session_id)
    assert fold(events_of(chunks)).conversation.messages[0].text == told
    assert watch.chunks[-1].event.used_bullets == (GREET.id,)  # type: ignore[union-attr]  # the end of the run
    assert (await replay(chunks)).difference is None
    await app.aclose()


async def test_a_second_run_of_the_session_is_not_told_the_same_again(tmp_path: Path) -> None:
    app = told_app(tmp_path, {"text": "one"}, {"text": "by [bat-00001]"})
    watch = Watch()
    first = await app.runs.run(RunRequest("run the tests"), watch)
    await app.runs.run(RunRequest("run the tests", session=first.session_id), watch)
    assert [ids(start.lessons) for start in started(watch)] == [["bat-00001", "mypc-00001"]] * 2
    said = "".join(
        m.text for m in fold(events_of(app.journal.chunks(first.session_id))).conversation.messages
    )
    assert said.count(TESTS.content) == 1
    assert watch.chunks[-1].event.used_bullets == ("bat-00001",)  # type: ignore[union-attr]  # the end of the run
    await app.aclose()


async def test_the_system_prompt_is_the_same_with_and_without_lessons(tmp_path: Path) -> None:
    """A provider's cache holds it: the lessons stand beside the request."""
    prompts: list[str] = []
    for advice in (None, playbooks()):
        folder = tmp_path / str(len(prompts))
        folder.mkdir()
        app = told_app(folder, {"text": "one"}, advice=advice)

        def note(chunk: Any, app: App = app, place: str = str(folder)) -> None:
            if (told := app.runs.model_prompt(chunk.run)) is not None and told.system:
                prompts.append(told.system.replace(place, ""))

        await app.runs.run(RunRequest("run the tests"), note)
        await app.aclose()
    assert len(set(prompts)) == 1
    assert "bat-00001" not in prompts[0]


async def test_a_nested_run_is_told_what_fits_its_own_request(tmp_path: Path) -> None:
    """R0.102: a stage has what its brief holds."""
    hand = {"tool": "agent/handoff", "args": {"agent": "runner", "request": "say hi"}}
    app = told_app(
        tmp_path,
        {"text": "By [pac-00007]:", "calls": [shell("echo hi")], "when": "say hi"},
        {"text": "I ask the runner.", "calls": [hand], "when": "run the tests"},
        {"text": "It said hi.", "when": "Exit code"},
        {"text": "Done.", "when": "It said hi."},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("run the tests", approvals="all"), watch)
    outer, inner = started(watch)
    assert (ids(outer.lessons), ids(inner.lessons)) == (["bat-00001", "mypc-00001"], ["pac-00007"])
    back = next(c.event for c in watch.chunks if isinstance(c.event, HandoffEnd))
    ends = [c.event.used_bullets for c in watch.chunks if isinstance(c.event, RunFinished)]
    assert back.used_bullets == ("pac-00007",)
    assert ends == [("pac-00007",), ("pac-00007",)], "its own, and that of the run around it"
    nested = next(c for c in watch.chunks if c.parent is not None)
    own = [c.event for c in app.journal.chunks(result.session_id) if c.run == nested.run]
    assert GREET.content in fold(own).conversation.messages[0].text
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_resumed_run_has_the_lessons_that_it_began_with(tmp_path: Path) -> None:
    app = told_app(tmp_path, {"calls": [shell("touch made")]}, {"text": "by [bat-00001]"})
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("run the tests"), watch))
    asked = await watch.until("approval_asked")
    paused = await app.runs.pause(asked.run)
    await task
    later = Runs(replace(app.runs.services, playbooks=playbooks(Held(GREET))))
    await later.approve(paused.run_id, asked.event.approval_id, "allow_once")  # type: ignore[union-attr]  # an ApprovalAsked
    result = await later.resume(paused.run_id, watch)
    assert result.status == "completed", result
    assert len(started(watch)) == 1
    (end,) = [c.event for c in watch.chunks if isinstance(c.event, RunFinished)]
    assert end.used_bullets == ("bat-00001",)
    await app.aclose()


@pytest.mark.parametrize("approvals", ["work", "all"])
async def test_a_run_on_a_work_item_is_told_nothing_of_the_persons_own(
    tmp_path: Path, approvals: ApprovalMode
) -> None:
    """X.10: there are two long-term playbooks. What the run says is read by others; the repository's lessons are theirs too."""
    app = told_app(tmp_path, {"text": "done"})
    watch = Watch()
    await app.runs.run(RunRequest("run the tests", approvals=approvals, tainted=True), watch)
    (start,) = started(watch)
    assert ids(start.lessons) == (["bat-00001"] if approvals == "work" else ["bat-00001", "mypc-00001"])
    await app.aclose()


async def test_a_run_that_asks_no_model_is_told_nothing(tmp_path: Path) -> None:
    from daiku.domain.tools import ToolCall

    app = told_app(tmp_path)
    watch = Watch()
    call = ToolCall(id="call_1", tool="files/list", args={})
    await app.runs.run(RunRequest("run the tests", calls=(call,)), watch)
    assert started(watch)[0].lessons == ()
    await app.aclose()


class Broken:
    """Playbooks whose database is gone, or that never answer."""

    def __init__(self, wrong: Exception | None) -> None:
        self.wrong = wrong

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        if self.wrong is None:
            await asyncio.Event().wait()
            raise AssertionError("never")
        raise self.wrong

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        return ()


@pytest.mark.parametrize(
    "wrong",
    [DaikuError(Failure(kind="internal", message=Text("database is locked"))), OSError("disk is full"), None],
)
async def test_playbooks_that_fail_or_do_not_answer_stop_no_run_and_it_is_said(
    tmp_path: Path, wrong: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recalling, "RECALL_SECONDS", 0.01)
    app = told_app(tmp_path, {"text": "hello"}, advice=Broken(wrong))
    watch = Watch()
    result = await app.runs.run(RunRequest("run the tests"), watch)
    assert (result.status, result.text) == ("completed_unverified", "hello")
    (warning,) = [c.event for c in watch.chunks if isinstance(c.event, Notice) and c.event.level == "warning"]
    assert "receives no lessons" in warning.text
    await app.aclose()
