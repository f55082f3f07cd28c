"""What a process that was killed did not learn is made up by the next one that looks, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from daiku.app import App
from daiku.dataclass import replace
from daiku.domain.events import Bullet, RunStarted
from daiku.playbook.unlearnt import MOST, PendingRuns, catch_up
from daiku.run.request import RunRequest
from daiku.run.runs import Runs
from tests.runs.playing import Watch, make_app

NEWS = Bullet(bullet_id="pc-00001", change="add", content="x", why="corrected")


def an_app(folder: Path, learn: Callable[[str], Sequence[Bullet]], *texts: str) -> tuple[App, PendingRuns]:
    (folder / "project").mkdir(exist_ok=True)
    app = make_app(folder, *({"text": each} for each in texts))
    assert app.stores is not None
    unlearnt = PendingRuns(app.stores.database, app.runs.services.workspace_key)
    runs = Runs(replace(app.runs.services, learning=learn, pending_learning=unlearnt))
    return replace(app, runs=runs), unlearnt


def nothing(_: str) -> Sequence[Bullet]:
    return ()


def killed(_: str) -> Sequence[Bullet]:
    """As far as others see, a process that ends here is one that was killed here."""
    raise RuntimeError("killed between the run's end and what it showed")


async def left_by_a_killed_process(folder: Path) -> str:
    app, unlearnt = an_app(folder, killed, "one")
    done = await app.runs.run(RunRequest("go"), Watch())
    await app.runs.learner.settle(reflections=False)
    assert unlearnt.sessions() == (done.session_id,)
    await app.aclose()
    return done.session_id


async def test_the_next_process_learns_from_what_was_left_once(tmp_path: Path) -> None:
    """Counted once, and said in the session that it was learnt from."""
    session, seen = await left_by_a_killed_process(tmp_path), list[str]()

    def learn(name: str) -> Sequence[Bullet]:
        seen.append(name)
        return (NEWS,)

    app, unlearnt = an_app(tmp_path, learn)
    for _ in range(2):
        await app.runs.learner.catch_up()
        await app.runs.learner.settle(reflections=False)
    assert seen == [session]
    assert unlearnt.sessions() == ()
    assert [c.type for c in app.journal.chunks(session)][-2:] == ["run_finished", "bullet"]
    await app.aclose()


async def test_who_only_looks_at_a_playbook_makes_it_up_too(tmp_path: Path) -> None:
    session = await left_by_a_killed_process(tmp_path)
    app, unlearnt = an_app(tmp_path, nothing)
    catch_up(app.journal, unlearnt, lambda name: (NEWS,) if name == session else ())
    assert [c.type for c in app.journal.chunks(session)][-1] == "bullet"
    assert unlearnt.sessions() == ()
    catch_up(app.journal, unlearnt, killed)
    await app.aclose()


async def test_what_was_learnt_from_is_not_made_up(tmp_path: Path) -> None:
    app, unlearnt = an_app(tmp_path, nothing, "one")
    noted: list[tuple[str, ...]] = []

    def listen(chunk: object) -> None:
        noted.append(unlearnt.sessions())

    done = await app.runs.run(RunRequest("go"), listen)
    assert noted[-1] == (done.session_id,), "noted before anything can be lost"
    await app.runs.learner.settle(reflections=False)
    assert unlearnt.sessions() == ()
    await app.aclose()


async def test_a_run_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    session = await left_by_a_killed_process(tmp_path)
    app, unlearnt = an_app(tmp_path, nothing)
    lock = app.journal.lock(session)
    catch_up(app.journal, unlearnt, killed)
    assert unlearnt.sessions() == (session,)
    lock.release()
    await app.aclose()


async def test_a_deleted_session_is_forgotten_and_there_is_an_end_to_it(tmp_path: Path) -> None:
    app, unlearnt = an_app(tmp_path, nothing)
    for number in range(MOST + 5):
        unlearnt.add(f"run_{number}", f"sess_{number}")
    other = PendingRuns(unlearnt.database, "elsewhere")
    other.add("run_x", "sess_x")
    assert unlearnt.sessions()[0] == f"sess_{MOST + 4}"
    seen: list[str] = []

    def learn(name: str) -> Sequence[Bullet]:
        seen.append(name)
        app.journal.chunks(name)
        return (NEWS,) if any(isinstance(c.event, RunStarted) for c in app.journal.chunks(name)) else ()

    catch_up(app.journal, unlearnt, learn)
    assert len(seen) == MOST
    catch_up(app.journal, unlearnt, learn)
    assert len(seen) == MOST + 5
    assert (unlearnt.sessions(), other.sessions()) == ((), ("sess_x",))
    await app.aclose()
