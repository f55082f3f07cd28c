"""What comes after runs: nobody waits for what is learnt, none is learnt from twice at once, and a failure ends nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from daiku.app import App
from daiku.dataclass import replace
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import ApprovalGiven, Event, MessageEvent, RunFinished, RunStarted, ToolResponse
from daiku.domain.held import Bullet, Lesson
from daiku.playbook.background import may_teach
from daiku.run.request import RunRequest
from daiku.run.runs import Runs
from daiku.texts.text import Text
from tests.runs.playing import Watch, make_app


def learning_app(folder: Path, learn: Callable[[str], Sequence[Bullet]], *texts: str) -> App:
    (folder / "project").mkdir(exist_ok=True)
    app = make_app(folder, *({"text": each} for each in texts))
    return replace(app, runs=Runs(replace(app.runs.services, learning=learn)))


async def test_a_result_is_there_before_anything_is_learnt_and_the_end_waits_for_it(tmp_path: Path) -> None:
    go, done = threading.Event(), list[str]()

    def learn(session: str) -> Sequence[Bullet]:
        assert go.wait(20)
        done.append(session)
        return ()

    app = learning_app(tmp_path, learn, "one", "two")
    first = await app.runs.run(RunRequest("go"), Watch())
    second = await app.runs.run(RunRequest("go", session=first.session_id), Watch())
    assert (first.text, second.text, done) == ("one", "two", [])
    go.set()
    await app.aclose()
    assert done in ([first.session_id], [first.session_id] * 2)


async def test_what_is_learnt_while_the_next_run_works_stands_in_it(tmp_path: Path) -> None:
    news = [Bullet(bullet_id="pc-00001", change="add", content="x", why="corrected")]

    def learn(_: str) -> Sequence[Bullet]:
        return (news.pop(),) if news else ()

    app = learning_app(tmp_path, learn, "one", "two")
    first = await app.runs.run(RunRequest("go"), Watch())
    await app.runs.run(RunRequest("go", session=first.session_id), Watch())
    await app.runs.learner.settle()
    types = [chunk.type for chunk in app.journal.chunks(first.session_id)]
    assert types.count("bullet") == 1
    assert types.index("bullet") > types.index("run_finished")
    await app.aclose()


async def test_one_session_that_teaches_nothing_keeps_no_other_from_teaching(tmp_path: Path) -> None:
    seen: list[str] = []

    def learn(session: str) -> Sequence[Bullet]:
        seen.append(session)
        raise OSError("broken")

    app = learning_app(tmp_path, learn, "one", "two")
    first = await app.runs.run(RunRequest("go"), Watch())
    second = await app.runs.run(RunRequest("go"), Watch())
    await app.runs.learner.settle()
    assert (first.status, second.status) == ("completed", "completed")
    assert seen == [first.session_id, second.session_id]
    await app.aclose()


def chunks(*events: Event) -> list[Chunk]:
    return [Chunk(n, "", "s", "r", "c", event, encode_event(event)) for n, event in enumerate(events, 1)]


def test_only_what_may_teach_something_is_looked_at() -> None:
    plain = (RunStarted(prompt="x"), RunFinished(status="completed"))
    said = ToolResponse(id="1", tool="shell/run", ok=False, result=Text("no"))
    assert not may_teach(chunks(*plain))
    assert may_teach(chunks(RunStarted(prompt="x", lessons=(Lesson(id="a", version=1, text="t"),))))
    assert may_teach(chunks(*plain, said))
    assert may_teach(chunks(*plain, MessageEvent(role="user", text=Text("no"), agent="user")))
    assert not may_teach(chunks(*plain, MessageEvent(role="user", text=Text("no"), agent="daiku")))
    assert may_teach(chunks(*plain, ApprovalGiven(approval_id="a", decision="reject_once")))
    assert not may_teach(
        chunks(*plain, ApprovalGiven(approval_id="a", decision="reject_once", unattended=True))
    )
    assert may_teach(chunks(*plain, RunStarted(prompt="no, use tabs")))
