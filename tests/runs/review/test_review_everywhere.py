"""What waits for a decision is a matter of the folder: whichever conversation changed it, and after restarts."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from daiku import api
from daiku.app import App
from daiku.domain.events import Edit, RunFinished, RunStarted
from daiku.domain.work.patches import FileChange, FileStat
from daiku.edits.review.decisions import Reviews
from daiku.edits.review.views import list_changed_everywhere
from tests.runs.playing import make_app
from tests.runs.review.test_decisions import SLOTS, Story, about_to_change


def begun(app: App, run: str) -> str:
    session = app.journal.add_session(app.runs.services.workspace_key)
    app.journal.writer(session).write(
        run, None, "c", (RunStarted(prompt="x"), RunFinished(status="completed"))
    )
    return session


async def shown(app: App) -> tuple[api.ChangedFile, ...]:
    """What is listed; the same where nothing is remembered from before."""
    listed = list_changed_everywhere(await app.reviews.everywhere())
    assert listed == list_changed_everywhere(await Reviews(app.runs, app.checkpoints).everywhere())
    return listed


def story_in(folder: Path) -> tuple[Story, str, str]:
    (folder / "project").mkdir()
    app = make_app(folder)
    one, other = begun(app, "run_0000000000000001"), begun(app, "run_0000000000000002")
    story = Story(folder, app, one)
    story.file.write_bytes(story.text(story.now).encode())
    return story, one, other


moves = st.lists(
    st.tuples(
        st.sampled_from(["daiku", "daiku", "person", "accept", "reject", "restart"]),
        st.integers(0, 1),
        st.integers(0, SLOTS - 1),
    ),
    max_size=12,
)


@settings(max_examples=12)
@given(moves)
def test_what_two_conversations_changed_waits_until_each_change_is_decided_on(
    story: list[tuple[str, int, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(told(Path(folder), story))


async def told(folder: Path, moves: list[tuple[str, int, int]]) -> None:
    story, *sessions = story_in(folder)
    whose: dict[int, str] = {}
    for move, n, slot in moves:
        story.session = whose.get(slot, sessions[n])
        match move:
            case "daiku":
                await story.daiku(slot)
            case "person":
                story.person(slot)
            case "accept" | "reject":
                await story.decide(slot, accept=move == "accept")
            case _:
                await story.restart()
        if story.base[slot] != story.now[slot]:
            whose[slot] = story.session
        else:
            whose.pop(slot, None)
        listed = await shown(story.app)
        told = sorted((file.session_id, hunk.text) for file in listed for hunk in file.hunks)
        assert len(told) == len(whose)
        assert sorted(session for session, _ in told) == sorted(whose.values())
        assert sum(file.added for file in listed) == sum(story.now[slot].count("\n") for slot in whose)
    await story.app.aclose()


async def test_a_fork_shows_what_it_shares_once_and_an_acceptance_counts_for_both(tmp_path: Path) -> None:
    story, one, _ = story_in(tmp_path)
    await story.daiku(1)
    await story.daiku(5)
    fork = (await story.app.reviews.fork(one, 10_000)).session_id
    story.session = fork
    await story.daiku(6)
    story.session = one
    await story.daiku(3)
    story.session = fork
    listed = await shown(story.app)
    assert sum(len(file.hunks) for file in listed) == 4
    for file in listed:
        assert (file.added, file.removed) == (
            sum(hunk.new_lines for hunk in file.hunks),
            sum(hunk.old_lines for hunk in file.hunks),
        )
    await story.decide(1, accept=True)
    assert [len(await hunks_in(story, name)) for name in (one, fork)] == [2, 2]
    await story.decide(5, accept=False)
    assert [len(await hunks_in(story, name)) for name in (one, fork)] == [1, 1]
    assert sum(len(file.hunks) for file in await shown(story.app)) == 2
    await story.app.aclose()


async def hunks_in(story: Story, session: str) -> list[int]:
    story.session, before = session, story.session
    found = await story.hunks()
    story.session = before
    return list(found)


async def test_a_change_of_a_change_is_accepted_without_the_one_below_it(tmp_path: Path) -> None:
    story, one, other = story_in(tmp_path)
    await story.daiku(1)
    story.session = other
    await story.daiku(1)
    assert [len(await hunks_in(story, name)) for name in (one, other)] == [1, 1]
    await story.decide(1, accept=True)
    assert [len(await hunks_in(story, name)) for name in (one, other)] == [1, 0]
    await story.app.aclose()


async def test_an_edit_that_is_not_on_record_yet_is_looked_for_again(tmp_path: Path) -> None:
    story, one, _ = story_in(tmp_path)
    before = story.file.read_bytes().decode()
    run = story.app.runs.last_run(one)
    change = FileChange(path="a.txt", kind="edit", old=before, new=f"new\n{before}")
    await about_to_change(story.app, one, run, change)
    assert await shown(story.app) == ()
    story.file.write_bytes(f"new\n{before}".encode())
    (file,) = await shown(story.app)
    assert [hunk.text for hunk in file.hunks] == ["+new\n"]
    await story.app.aclose()


async def test_a_file_that_two_forks_made_is_accepted_in_both_as_a_whole(tmp_path: Path) -> None:
    story, one, _ = story_in(tmp_path)
    await story.daiku(2)
    fork = (await story.app.reviews.fork(one, 10_000)).session_id
    await story.app.reviews.decide(fork, "accept", None, None)
    assert await story.app.reviews.everywhere() == {}
    await story.app.aclose()


async def test_other_folders_and_deleted_conversations_are_not_among_them(tmp_path: Path) -> None:
    story, one, _ = story_in(tmp_path)
    await story.daiku(2)
    elsewhere = story.app.journal.add_session("/some/other/folder")
    edited = Edit(files=(FileStat(path="a.txt", kind="edit"),), checkpoint_id="checkpoint_1")
    story.app.journal.writer(elsewhere).write("run_0000000000000003", None, "c", (edited,))
    assert list(story.app.journal.changed_sessions(story.app.runs.services.workspace_key)) == [one]
    assert list(story.app.journal.changed_sessions("/some/other/folder")) == [elsewhere]
    story.app.journal.delete_session(one)
    assert await story.app.reviews.everywhere() == {}
    await story.app.aclose()
