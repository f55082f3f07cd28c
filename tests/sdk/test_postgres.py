"""A Runner whose conversations are in PostgreSQL: runs outlive their process and their machine, and have one holder."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daiku import Agent, Runner, tool
from daiku.domain.events import ApprovalAsked, Notice
from daiku.store.postgres import PostgresDatabase
from daiku.testing import FakeLLM
from daiku.trace.journal import Journal
from tests.postgres import NewDatabase
from tests.sdk.test_resuming import program, until_built

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres: NewDatabase) -> str:
    return postgres()


@pytest.fixture
async def database(url: str) -> AsyncIterator[PostgresDatabase]:
    """A look at the database from elsewhere."""
    opened = PostgresDatabase(url)
    yield opened
    opened.close()


async def test_a_conversation_is_gone_on_with_by_another_runner(url: str) -> None:
    agent = Agent("a", "x")
    async with Runner(model=FakeLLM("one"), store=url) as runner:
        first = await runner.run(agent, "Hi.")
    assert first.status == "completed"
    async with Runner(model=FakeLLM("two"), store=url) as runner:
        second = await runner.run(agent, "And?", session=first.session_id)
    assert (second.status, second.session_id) == ("completed", first.session_id)


async def test_a_run_that_another_process_took_over_ends_here_without_another_word(
    url: str, database: PostgresDatabase
) -> None:
    """What a tool answers after that is not recorded, and no other tool begins."""
    ran: list[str] = []

    @tool(effect="command")
    def first() -> str:
        """Do the first thing, while the lease runs out and somebody else takes it."""
        database.write("UPDATE leases SET number = number + 1, holder = 'other'")
        ran.append("first")
        return "done"

    @tool(effect="command")
    def second() -> str:
        """Do the second thing."""
        ran.append("second")
        return "done"

    calls = [{"tool": "first", "args": {}}, {"tool": "second", "args": {}}, "Both are done."]
    async with Runner(model=FakeLLM(*calls), store=url, approvals="all") as runner:
        result = await runner.run(Agent("a", "Do both.", tools=[first, second]), "Go.")
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.kind, "taken this conversation over" in result.error.message) == ("busy", True)
    assert ran == ["first"]
    journal = Journal(PostgresDatabase(url))
    chunks = journal.chunks(result.session_id)
    assert chunks[-1].type == "tool_call"
    assert database.query("SELECT status FROM sessions") == [("running",)]
    assert database.query("SELECT holder FROM leases") == [("other",)]
    journal.close()


async def test_a_run_whose_process_was_killed_is_taken_over_when_its_time_is_up(
    url: str, database: PostgresDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "work"
    first = await program("work", url, file)
    await until_built(file)
    first.send_signal(signal.SIGKILL)
    await first.wait()
    run, session = file.read_text().split()[:2]
    database.write("UPDATE leases SET expires = 1")  # the time that passes
    second = await program("resume", url, file)
    said, _ = await second.communicate()
    status, text = said.decode().split("\n", 1)
    assert status == f"completed {run} {session}"
    assert "interrupted" in text
    assert file.read_text().count("built") == 1


async def test_a_stopped_process_that_goes_on_after_it_was_taken_over_from_writes_nothing(
    url: str, database: PostgresDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "work"
    first = await program("work", url, file)
    await until_built(file)
    first.send_signal(signal.SIGSTOP)
    database.write("UPDATE leases SET expires = 1")
    second = await program("resume", url, file)
    await second.communicate()
    after = database.query("SELECT seq, type FROM chunks ORDER BY seq")
    first.send_signal(signal.SIGCONT)
    first.send_signal(signal.SIGINT)
    await first.wait()
    assert database.query("SELECT seq, type FROM chunks ORDER BY seq") == after
    assert database.query("SELECT status FROM sessions") == [("completed",)]


async def test_the_password_of_the_database_is_in_no_record(url: str, database: PostgresDatabase) -> None:
    secret = "canary-word"  # of the fixture's URL
    assert secret in url

    @tool
    def look() -> str:
        """Look around."""
        return f"DATABASE_URL={url} {secret}"

    llm = FakeLLM({"tool": "look", "args": {}}, f"It is {secret}.")
    async with Runner(model=llm, store=url) as runner:
        result = await runner.run(Agent("a", "x", tools=[look]), f"Is it {secret}?")
    assert result.status == "completed"
    assert all(secret not in data for (data,) in database.query("SELECT data FROM chunks"))
    assert all(secret not in title for (title,) in database.query("SELECT title FROM sessions"))


async def test_a_run_that_waits_is_resumed_in_another_home_and_its_checkpoints_are_given_up_openly(
    url: str, tmp_path: Path
) -> None:
    """Checkpoints are on the disk of the machine that took them; what they are of is not undone elsewhere."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def agent() -> Agent:
        return Agent("ops", "Write, then deploy.", tools=["files/write", tool(effect="command")(deploy)])

    def deploy() -> str:
        """Put it there."""
        return "deployed"

    written = {"tool": "files/write", "args": {"path": "a.txt", "content": "new\n"}}
    async with Runner(
        model=FakeLLM(written, {"tool": "deploy", "args": {}}),
        store=url,
        workspace=workspace,
        approvals="ask",
    ) as runner:
        stream = runner.stream(agent(), "Go.")
        async for chunk in stream:
            if isinstance(chunk.event, ApprovalAsked):
                if (workspace / "a.txt").exists():
                    runner.pause(chunk.run)
                else:
                    runner.approve(chunk.event.approval_id, "allow_once")
    run = stream.result.run_id
    assert (workspace / "a.txt").read_text() == "new\n"

    async with Runner(
        model=FakeLLM("All is there."), store=url, workspace=workspace, approvals="all"
    ) as runner:
        result = await runner.resume(run, agent=agent())
    assert (result.status, result.text) == ("completed", "All is there.")
    journal = Journal(PostgresDatabase(url))
    notices = [c.event.text for c in journal.chunks(result.session_id) if isinstance(c.event, Notice)]
    assert any("cannot be undone here" in notice for notice in notices)
    journal.close()
