"""Memory of the public API: what is kept, how it is found, what it refuses, what it does when its services fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from daiku import Memory
from daiku.domain.errors import Failure, LLMTimeoutError, UsageError
from daiku.memory.memory import LONGEST, MOST_SESSIONS, WINDOW, SessionWindows
from daiku.memory.rules.vectors import Vector, to_integers
from daiku.texts.text import NO_TEXT, Text
from tests.conftest import ROOT


async def texts(memory: Memory) -> list[str]:
    return [entry.text for entry in await memory.list()]


async def test_it_is_kept_over_processes_in_a_file_and_nowhere_without_one(tmp_path: Path) -> None:
    """R1.16, C1.11: long-term memory in a file without a server; None is in memory only."""
    async with Memory(tmp_path / "m.db") as memory:
        kept = await memory.remember("tabs, not spaces", session="s1", origin="run_1")
    async with Memory(f"sqlite:///{tmp_path}/m.db") as memory:
        (entry,) = await memory.list()
        assert (entry.id, entry.text, entry.session, entry.origin) == (
            kept,
            "tabs, not spaces",
            "s1",
            "run_1",
        )
        assert (tmp_path / "m.db").stat().st_mode & 0o077 == 0
    assert await texts(Memory()) == []


async def test_only_what_fits_is_recalled_the_best_first_within_its_bounds() -> None:
    """R1.93: the long-term memory is searched."""
    memory = Memory(top_k=2, token_budget=60)
    for said in (
        "deploy on Fridays",
        "the deploy script is deploy.sh",
        "deploys are announced",
        "Kenji likes tea",
    ):
        await memory.remember(said)
    found = await memory.recall("how does the deploy script work?")
    assert found[0].text == "the deploy script is deploy.sh"
    assert len(found) <= 2
    assert all(0 < each.score <= 1 for each in found)
    assert await memory.recall("quantum chromodynamics") == ()
    assert await memory.recall("  ") == ()
    assert await Memory(token_budget=0).recall("deploy") == ()
    tight = Memory(top_k=5, token_budget=8)
    await tight.remember("the deploy script is deploy.sh")
    await tight.remember("the deploy script needs the variable TARGET and a clean tree and a tag")
    assert [each.text for each in await tight.recall("deploy script")] == ["the deploy script is deploy.sh"]


async def test_a_short_question_is_understood_by_what_was_said_before_it() -> None:
    """R1.16: the short-term window of a session."""
    memory = Memory()
    await memory.remember("the staging database runs on port 5544")
    assert await memory.recall("and where is it?", session="other") == ()
    await memory.recall("I want to look at the staging database", session="s")
    assert len(await memory.recall("where is it?", session="s")) == 1
    assert memory.recent("s") == ("I want to look at the staging database", "where is it?")


def test_a_window_is_a_deque_of_a_session_and_only_the_latest_sessions_have_one() -> None:
    windows = SessionWindows()
    for session in range(MOST_SESSIONS + 5):
        for said in range(WINDOW + 3):
            windows.add(f"s{session}", f"{said}")
    assert windows.messages_of("s0") == ()
    assert windows.messages_of("s200") == tuple(f"{said}" for said in range(3, WINDOW + 3))


SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


async def test_a_secret_is_taken_out_before_it_is_kept_or_embedded(tmp_path: Path) -> None:
    """R1.93, X.10: redacted before storing, also where it is broken up by what nobody sees."""
    file = tmp_path / "m.db"
    async with Memory(file, redact=lambda said: said.replace("hunter2!", "[redacted]")) as memory:
        await memory.remember("the password is hunter2!")
        await memory.remember("hun\u200bter2! again")
    async with Memory(file) as memory:
        await memory.remember(f"the key is {SECRET}")
        kept = "\n".join(await texts(memory))
    assert "[redacted]" in kept
    for secret in ("hunter2", SECRET):
        assert secret not in kept
        assert secret.encode() not in file.read_bytes()


async def test_what_is_forgotten_is_gone_from_the_file(tmp_path: Path) -> None:
    """R1.93: forgettable."""
    file = tmp_path / "m.db"
    async with Memory(file) as memory:
        kept = await memory.remember("Zanzibarquokka lives next door")
        await memory.remember("another Zebrafinch thing")
        assert b"zanzibarquokka" in b"".join(f.read_bytes() for f in tmp_path.iterdir()).lower()
        assert await memory.forget(kept)
        assert await memory.recall("Zanzibarquokka") == ()
        everything = b"".join(f.read_bytes() for f in tmp_path.iterdir()).lower()
        assert b"zanzibarquokka" not in everything
        assert b"zebrafinch" in everything
        assert await memory.forget_all() == 1
        assert b"zebrafinch" not in b"".join(f.read_bytes() for f in tmp_path.iterdir()).lower()


async def test_two_users_and_two_workspaces_share_a_file_and_nothing_else(tmp_path: Path) -> None:
    """R1.93: per workspace and user."""
    file = tmp_path / "m.db"
    async with (
        Memory(file, user="kenji", workspace="/a") as mine,
        Memory(file, user="yuki", workspace="/a") as hers,
        Memory(file, user="kenji", workspace="/b") as elsewhere,
    ):
        kept = await mine.remember("the door code is 4711")
        for other in (hers, elsewhere):
            assert await other.recall("what is the door code?") == ()
            assert await other.search("door code") == ()
            assert await texts(other) == []
            assert not await other.forget(kept)
            assert await other.forget_all() == 0
        assert len(await mine.recall("what is the door code?")) == 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a\x00b", "ab"),
        ("lone \ud800 half", "lone ? half"),
        ("tag\U000e0041s \u202egnp", "tags gnp"),
        ("  \u200b ", ""),
        ("", ""),
    ],
)
async def test_what_nobody_sees_is_not_kept(said: str, kept: str) -> None:
    memory = Memory()
    found = await memory.remember(said)
    assert bool(found) == bool(kept)
    assert await texts(memory) == ([kept] if kept else [])
    assert await memory.search(said or "x") is not None


async def test_a_text_that_is_too_long_is_refused_and_a_long_question_is_not() -> None:
    memory = Memory()
    with pytest.raises(UsageError, match="too long"):
        await memory.remember("x " * LONGEST)
    await memory.remember("short and sweet")
    assert await memory.recall("word " * 200_000) == ()
    assert len(await memory.recall("word " * 200_000 + "short and sweet " * 40)) == 1


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("mysql://a/b", "in a mysql database"),
        ("sqlite://", "in a sqlite database"),
        ("redis://h", "in a redis database"),
    ],
)
def test_a_database_of_another_kind_is_refused_in_a_sentence(place: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Memory(place)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="top_k is at least 1"):
        Memory(top_k=0)
    with pytest.raises(ValueError, match="token_budget is at least 0"):
        Memory(token_budget=-1)
    with pytest.raises(UsageError, match="is not an embedding model"):
        Memory(embedder="anthropic/claude")


class Axes:
    """An embedder of two dimensions and more, which can fail."""

    unrelated = 0.5
    describe: Text = NO_TEXT

    def __init__(self, name: str, dimension: int = 2) -> None:
        self.name, self.dimension = name, dimension
        self.broken = False
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += texts
        if self.broken:
            raise LLMTimeoutError(Failure(kind="connection", message=Text("The embedder is out of reach.")))
        axes = ((1.0, 0.1) if "cat" in said or "feline" in said else (0.1, 1.0) for said in texts)
        return [to_integers([*axis, *[0.0] * (self.dimension - 2)]) for axis in axes]

    async def aclose(self) -> None:
        pass


async def test_another_model_or_dimension_embeds_anew_what_is_there(tmp_path: Path) -> None:
    """R1.62, C1.11: vectors of two embedders are never mixed."""
    file = tmp_path / "m.db"
    async with Memory(file, embedder=Axes("first")) as memory:
        for at in range(100):
            await memory.remember(f"dog number {at}")
        await memory.remember("a cat")
    for embedder in (Axes("second"), Axes("second", 5), Axes("first")):
        async with Memory(file, embedder=embedder) as memory:
            assert [each.text for each in await memory.recall("feline")] == ["a cat"]
            assert len(embedder.asked) == 102
            assert [each.text for each in await memory.recall("feline")] == ["a cat"]
            assert len(embedder.asked) == 103


async def test_an_embedder_out_of_reach_loses_nothing_and_words_are_searched() -> None:
    embedder = Axes("e")
    memory = Memory(embedder=embedder)
    embedder.broken = True
    assert await memory.remember("a cat in the garden")
    assert [each.text for each in await memory.recall("the cat")] == ["a cat in the garden"]
    assert [each.text for each in await memory.search("cat")] == ["a cat in the garden"]
    assert await memory.recall("feline") == ()
    embedder.broken = False
    assert [each.text for each in await memory.recall("feline")] == ["a cat in the garden"]


def test_importing_daiku_loads_nothing_of_the_memory() -> None:
    code = (
        "import sys, daiku; daiku.Agent; daiku.Runner;"
        "print([m for m in sys.modules if m.startswith(('daiku.memory', 'psycopg', 'numpy', 'daiku.models.embed'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "server", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
