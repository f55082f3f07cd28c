"""Learning after runs, end to end: one observation of a run and bullet, whatever is resumed, replayed, copied, undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, AppParts, build
from daiku.dataclass import replace
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import InputAsked
from daiku.domain.held import Bullet, Lesson
from daiku.domain.playbook import Delta
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.outside import FoundLesson
from daiku.settings.config import Config, PlaybookSettings
from daiku.testing import FakeLLM, FakeReply
from daiku.trace.stores import open_stores
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, shell

MAKE = {"tool": "files/write", "args": {"path": "new.txt", "content": "hello\n"}}


NAMED = "Done, by [pc-00001]."


class Place:
    """A workspace whose runs are told what was taught in it."""

    def __init__(self, folder: Path, database: Path | str, **playbook: Any) -> None:
        self.folder, self.database = folder, database
        (folder / "project").mkdir(parents=True, exist_ok=True)
        self.settings = PlaybookSettings.model_validate(playbook)
        self.trusted = True
        self.watch = Watch()
        self.lessons: tuple[Lesson, ...] = ()

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        return self.lessons

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        return ()

    def app(self, *replies: FakeReply) -> App:
        """As another process opens it: with stores of its own. The model gives these replies."""
        config = Config(
            approvals=ApprovalSettings.model_validate({"command": "allow", "edit": "allow"}),
            sandbox=SandboxSettings(mode="off"),
            playbook=self.settings,
        )
        self.stores = open_stores(self.database, str)
        workspace = DiskWorkspace((self.folder / "project",))
        made = build(
            config,
            workspace=workspace,
            home=self.folder / "home",
            trusted=self.trusted,
            parts=AppParts(model=FakeLLM(*replies), stores=self.stores, plugins=False),
        )
        made.runs.services = replace(made.runs.services, playbooks=self)
        self.playbook = open_playbooks(self.stores.database, workspace.roots).repository
        assert self.playbook is not None
        return made

    async def close(self, app: App) -> None:
        await app.aclose()
        self.stores.close()

    @property
    def store(self) -> PlaybookStore:
        assert self.playbook is not None
        return self.playbook

    def teach(self, content: str) -> Lesson:
        made = self.store.apply(Delta(id="", type="add", section="project_conventions", content=content))
        assert isinstance(made, Delta), made
        lesson = Lesson(id=made.bullet_id, version=1, text=content)
        self.lessons = (*self.lessons, lesson)
        return lesson

    def counts(self, lesson: Lesson) -> tuple[int, int]:
        bullet = self.store.get(lesson.id)
        assert bullet is not None
        return bullet.helpful, bullet.harmful


@pytest.fixture
def place(tmp_path: Path, database: Path | str) -> Place:
    return Place(tmp_path, database)


async def test_a_run_that_names_a_lesson_and_works_counts_once_and_an_undo_takes_its_place(
    place: Place,
) -> None:
    app = place.app(MAKE, NAMED)
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (1, 0)
    back = await app.reviews.undo(result.session_id)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 1)
    await app.reviews.restore(back.redo)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (1, 0)
    seen = place.store.observations(bullet=lesson.id)
    assert [(each.run, each.verdict, each.why) for each in seen] == [(result.run_id, "helpful", "edits_kept")]
    await place.close(app)


async def test_a_rejection_days_later_in_another_process_is_the_last_word(place: Place) -> None:
    """C3.5, B3.4: the counts are sums of what holds now."""
    app = place.app(MAKE, NAMED)
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await place.close(app)
    later = place.app()
    assert place.counts(lesson) == (1, 0)
    await later.reviews.decide(result.session_id, "reject", None, None)
    await place.close(later)
    again = place.app()
    assert place.counts(lesson) == (0, 1)
    await place.close(again)


async def test_what_a_run_shows_is_about_the_text_that_it_was_told(place: Place) -> None:
    """B3.1: an undo that comes after a person changed the lesson speaks of the earlier text, and counts nothing."""
    app = place.app(MAKE, NAMED)
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (1, 0)
    other = Delta(id="", type="update", bullet_id=lesson.id, content="Indent with four blanks.")
    place.store.apply(other)
    assert place.counts(lesson) == (0, 0)
    await app.reviews.undo(result.session_id)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 0)
    (seen,) = place.store.observations(bullet=lesson.id)
    assert (seen.verdict, seen.version) == ("harmful", 1)
    await place.close(app)


async def test_a_lesson_that_is_changed_while_a_run_works_gains_nothing_by_what_the_run_was_told(
    place: Place,
) -> None:
    """B3.1: the run was told the text as it was."""
    app = place.app(MAKE, NAMED)
    lesson = place.teach("Keep files short.")
    other = Delta(id="", type="update", bullet_id=lesson.id, content="Indent with four blanks.")
    place.store.apply(other)
    await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 0)
    (seen,) = place.store.observations(bullet=lesson.id)
    assert (seen.verdict, seen.version) == ("helpful", 1)
    await place.close(app)


async def test_a_lesson_that_was_not_named_is_neutral(place: Place) -> None:
    app = place.app(MAKE, "Done.")
    lesson = place.teach("Keep files short.")
    await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 0)
    assert [each.why for each in place.store.observations()] == ["not_cited"]
    await place.close(app)


async def test_a_fork_counts_for_the_run_that_it_copies(place: Place) -> None:
    """C3.5. Also a fork of a fork: what a person undoes there turns the one observation of the run that did the work."""
    app = place.app(MAKE, NAMED, "More.", "And more.")
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    fork = (await app.reviews.fork(result.session_id, 10_000)).session_id
    fork = (await app.reviews.fork(fork, 10_000)).session_id
    await app.runs.run(RunRequest("go on", session=fork), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (1, 0)
    await app.reviews.undo(fork)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 1)
    assert [each.run for each in place.store.observations() if each.verdict == "harmful"] == [result.run_id]
    await app.runs.run(RunRequest("go on", session=result.session_id), place.watch)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 1)
    await place.close(app)


async def test_the_copies_of_a_deleted_session_still_count_for_it(place: Place) -> None:
    app = place.app(MAKE, NAMED)
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    fork = (await app.reviews.fork(result.session_id, 10_000)).session_id
    await app.runs.learner.settle()
    app.journal.delete_session(result.session_id)
    await app.reviews.undo(fork)
    await app.runs.learner.settle()
    assert place.counts(lesson) == (0, 1)
    app.journal.delete_session(fork)
    assert place.stores.database.query("SELECT * FROM copied_runs WHERE session = ?", (fork,)) == []
    await place.close(app)


async def test_a_resumed_run_counts_once(place: Place) -> None:
    asks = {"tool": "ask_user", "args": {"question": "Which?"}}
    app = place.app(MAKE, asks, NAMED)
    lesson = place.teach("Keep files short.")
    running = asyncio.create_task(app.runs.run(RunRequest("make it"), place.watch))
    asked = await place.watch.until("input_asked")
    paused = await app.runs.pause(asked.run)
    await running
    await app.runs.learner.settle()
    assert paused.status == "paused"
    assert place.store.observations() == ()
    assert isinstance(asked.event, InputAsked)
    await app.runs.answer(asked.run, asked.event.input_id, "this")
    result = await app.runs.resume(asked.run, place.watch)
    await app.runs.resume(asked.run, place.watch)
    await app.runs.learner.settle()
    assert result.status == "completed"
    assert place.counts(lesson) == (1, 0)
    assert len(place.store.observations()) == 1
    await place.close(app)


async def test_a_replay_counts_nothing_and_knows_what_was_learnt(place: Place) -> None:
    app = place.app(shell("false"), MAKE, NAMED)
    place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    before = place.store.observations(), place.store.revision()
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.runs.learner.settle()
    assert (place.store.observations(), place.store.revision()) == before
    await place.close(app)


@pytest.mark.parametrize("off", [{"enabled": False}, {"learn": "off"}])
async def test_nothing_is_observed_where_learning_is_off(
    tmp_path: Path, database: Path | str, off: dict[str, Any]
) -> None:
    place = Place(tmp_path, database, **off)
    app = place.app(MAKE, NAMED)
    place.teach("Keep files short.")
    await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert app.runs.services.learning is None
    assert place.store.observations() == ()
    await place.close(app)


async def test_an_untrusted_workspace_teaches_nothing(place: Place) -> None:
    place.trusted = False
    app = place.app(NAMED)
    place.teach("Keep files short.")
    await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert place.store.observations() == ()
    await place.close(app)


async def test_a_playbook_that_fails_leaves_the_result_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = place.app(MAKE, NAMED)
    place.teach("Keep files short.")

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(PlaybookStore, "observe", broken)
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    assert (result.status, result.text) == ("completed", NAMED)
    assert "not everything was learnt" in caplog.text
    await place.close(app)


async def test_what_was_learnt_is_told_in_the_session_after_the_run(place: Place) -> None:
    """A command that failed and the one that passed in its place are a proposal, told once."""
    (place.folder / "project").mkdir(exist_ok=True)
    (place.folder / "project" / "Makefile").write_text("check:\n\t@echo 4 passed\n")
    app = place.app(shell("make test"), shell("make check"), "Done.", "More.")
    result = await app.runs.run(RunRequest("run the tests"), place.watch)
    await app.runs.learner.settle()
    told_of = [c.event for c in app.journal.chunks(result.session_id) if isinstance(c.event, Bullet)]
    assert [each.change for each in told_of] == ["proposed"]
    assert "make check" in told_of[0].content
    types = [c.type for c in app.journal.chunks(result.session_id)]
    assert types.index("bullet") > types.index("run_finished")
    await app.runs.run(RunRequest("go on", session=result.session_id), place.watch)
    await app.runs.learner.settle()
    assert [c.type for c in app.journal.chunks(result.session_id)].count("bullet") == 1
    assert len(place.store.deltas("proposed")) == 1
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await place.close(app)


async def test_a_fork_does_not_learn_again_what_its_original_taught(place: Place) -> None:
    """Also where the person kept it in other words."""
    (place.folder / "project" / "Makefile").write_text("check:\n\t@echo 4 passed\n")
    app = place.app(shell("make test"), shell("make check"), "Done.", "More.")
    result = await app.runs.run(RunRequest("run the tests"), place.watch)
    await app.runs.learner.settle()
    (proposed,) = place.store.deltas("proposed")
    place.store.accept(proposed.id, "Tests: see the Makefile.")
    fork = (await app.reviews.fork(result.session_id, 10_000)).session_id
    await app.runs.run(RunRequest("go on", session=fork), place.watch)
    await app.runs.learner.settle()
    assert place.store.deltas("proposed") == ()
    await place.close(app)


async def test_a_lesson_is_learnt_followed_counted_and_falls_when_it_is_no_longer_true(place: Place) -> None:
    """From a failure to a proposal, to advice that later runs are told and name, to counts for and against it."""
    makefile = place.folder / "project" / "Makefile"
    makefile.write_text("check:\n\t@echo 4 passed\n")
    app = place.app(shell("make test"), shell("make check"), "Done.")
    await app.runs.run(RunRequest("run the tests"), place.watch)
    await app.runs.learner.settle()
    (proposed,) = place.store.deltas("proposed")
    accepted = place.store.accept(proposed.id)
    assert isinstance(accepted, Delta)
    name = accepted.bullet_id
    await place.close(app)

    place.lessons = (Lesson(id=name, version=1, text=accepted.content),)
    app = place.app([f"By [{name}].", shell("make check")], f"Done, by [{name}].")
    await app.runs.run(RunRequest("run the tests"), place.watch)
    await place.close(app)

    makefile.write_text("verify:\n\t@echo 4 passed\n")
    app = place.app([f"By [{name}].", shell("make check")], shell("make verify"), "Done.")
    assert place.counts(place.lessons[0]) == (1, 0)
    await app.runs.run(RunRequest("run the tests"), place.watch)
    await app.runs.learner.settle()
    assert place.counts(place.lessons[0]) == (1, 1)
    assert [each.why for each in place.store.observations(bullet=name)].count("command_replaced") == 1
    (better,) = place.store.deltas("proposed")
    assert "make verify" in better.content
    await place.close(app)
