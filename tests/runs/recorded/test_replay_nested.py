"""A session whose runs started others, played again without a model: each nested run too, and a changed one is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Runner
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, decode_event, encode_event
from daiku.domain.events import EPHEMERAL, ApprovalAsked, Event, HandoffEnd, HandoffStart, ToolCallEvent
from daiku.domain.runs import RunLimits
from daiku.run.recorded.compare import LEFT_OUT, TAKEN
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.testing import FakeLLM
from tests.runs.nested.test_tasks import call, main, propose, report, step, tasks, write
from tests.runs.nested.test_tasks import shell as task_shell
from tests.runs.nested.test_worktrees import ONE, TWO, two
from tests.runs.nested.test_worktrees import World as CopyWorld
from tests.runs.playing import Watch, make_app, shell

Json = dict[str, Any]
SAYING = "say hi"
FIRST = {"agent": "You work inside"}
"""What only the coordinator says."""


def hand(agent: str, request: str) -> Json:
    return {"tool": "agent/handoff", "args": {"agent": agent, "request": request}}


def handing() -> tuple[Json, ...]:
    """A run in a run in a run: the innermost runs a command that a person is asked about, and one that fails."""
    return (
        {
            **FIRST,
            "text": "I ask another.",
            "calls": [hand("coordinator", "take it deeper")],
            "when": "begin",
        },
        {**FIRST, "calls": [hand("runner", SAYING)], "when": "take it deeper"},
        {
            "calls": [shell("touch begun; echo hi; exit 3"), shell("touch made")],
            "when": SAYING,
            "agent": "now you run",
        },
        {"text": "It said hi.", "agent": "now you run"},
        {"text": "The runner said hi.", "when": "It said hi."},
        {"text": "All said.", "when": "The runner said hi."},
    )


async def played(folder: Path, *lines: Json, **more: Any) -> list[Chunk]:
    (folder / "project").mkdir(parents=True)
    app = make_app(folder, *lines)
    result = await app.runs.run(RunRequest("begin", approvals="all", **more), Watch())
    chunks = app.journal.chunks(result.session_id)
    await app.aclose()
    return chunks


async def handed(folder: Path) -> list[Chunk]:
    return await played(folder, *handing())


async def asked(folder: Path) -> list[Chunk]:
    """The person rejects one command of the innermost run and allows the other."""
    (folder / "project").mkdir(parents=True)
    app, watch = make_app(folder, *handing()), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("begin"), watch))
    run = (await watch.until("run_started")).run
    for decision in ("reject_once", "allow_once"):
        question = (await watch.until("approval_asked")).event
        assert isinstance(question, ApprovalAsked)
        watch.forget()
        await app.runs.approve(run, question.approval_id, decision)
    chunks = app.journal.chunks((await task).session_id)
    await app.aclose()
    return chunks


def exploring() -> tuple[Json, ...]:
    """Two explorers at once."""
    questions = {"calls": [{"tool": "agent/explore", "args": {"questions": ["where?", "why?"]}}]}
    look = {"calls": [{"tool": "files/list", "args": {}}], "agent": "now you explore"}
    answers = ({"text": "Here.", "agent": "now you explore", "when": "0 files"} for _ in range(2))
    return (
        {**questions, "when": "begin"},
        {**look, "when": "where?"},
        {**look, "when": "why?"},
        *answers,
        {"text": "Told."},
    )


async def explored(folder: Path) -> list[Chunk]:
    return await played(folder, *exploring())


async def tasked(folder: Path) -> list[Chunk]:
    """A plan, the tasks of its step made by one nested run, worked by a second, reported on by a third."""
    return await played(
        folder,
        propose(step("Set up", acceptance=["test -f package.json"])),
        main(call("plan/approve")),
        main(call("task_tool.generate_list", step_id="1")),
        tasks(write("package.json", "{}\n"), task_shell("cat package.json > copy.json")),
        main(call("task_loop.run", step_id="1")),
        report(),
        main(text="Step 1 is done."),
    )


async def objected(folder: Path) -> list[Chunk]:
    """A nested run whose first answer is of no use to the run around it."""
    return await played(
        folder,
        {**FIRST, "calls": [hand("planner", "plan it")], "when": "begin"},
        {"text": "", "agent": "now you plan"},
        {"text": "{", "agent": "now you plan"},
        {"text": "No.", "agent": "now you plan"},
        {"text": "So be it."},
    )


async def failed(folder: Path) -> list[Chunk]:
    """The nested run fails, and the run around it goes on."""
    return await played(
        folder,
        {**FIRST, "calls": [hand("runner", SAYING)], "when": "begin"},
        {"calls": [shell("echo one")], "agent": "now you run"},
        {"text": "half", "error": {"kind": "bad_request"}, "agent": "now you run"},
        {"text": "It failed."},
    )


async def limited(folder: Path) -> list[Chunk]:
    """The nested run comes to the limit that it shares with the run around it."""
    looks = ({"calls": [{"tool": "files/list", "args": {}}], "agent": "now you run"} for _ in range(6))
    return await played(
        folder,
        {**FIRST, "calls": [hand("runner", SAYING)], "when": "begin"},
        *looks,
        {"text": "Well."},
        limits=RunLimits(max_rounds=4),
    )


async def cancelled(folder: Path) -> list[Chunk]:
    """A person ends it while the innermost run runs a command."""
    (folder / "project").mkdir(parents=True)
    app = make_app(
        folder,
        {**FIRST, "calls": [hand("coordinator", "take it deeper")], "when": "begin"},
        {**FIRST, "calls": [hand("runner", SAYING)], "when": "take it deeper"},
        {"calls": [shell("sleep 30")], "agent": "now you run"},
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("begin", approvals="all"), watch))
    await _under_way(watch)
    await app.runs.cancel(watch.chunks[0].run)
    chunks = app.journal.chunks((await task).session_id)
    await app.aclose()
    return chunks


async def _under_way(watch: Watch) -> None:
    async with asyncio.timeout(20):
        while not any(c.type == "tool_call" and c.agent == "runner" for c in watch.chunks):
            await asyncio.sleep(0.01)


async def copied(folder: Path) -> list[Chunk]:
    """Two pieces at once in copies of the project, each brought back as a patch."""
    world = CopyWorld(folder, *two(ONE, TWO))
    await world.run()
    return [c for c in world.seen if c.type not in ("delta", "tool_output")]


KINDS = (handed, asked, explored, tasked, objected, failed, limited, cancelled, copied)


def nested(chunks: Sequence[Chunk]) -> set[str]:
    return {c.run for c in chunks if c.parent is not None}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_every_kind_of_nested_run_replays_to_the_same_events(tmp_path: Path, kind: Any) -> None:
    chunks = await kind(tmp_path)
    found = await replay(chunks)
    assert found.difference is None, found.difference
    assert found.nested == len(nested(chunks)) >= 1
    assert found.runs == len({c.run for c in chunks})
    assert found.events >= sum(c.type not in ("notice", "agent_start") for c in chunks)
    expected = {handed: "completed", cancelled: "cancelled", failed: "failed", limited: "limit"}
    ends = [c.event.status for c in chunks if isinstance(c.event, HandoffEnd)]
    assert expected.get(kind, "completed") in ends


@pytest.mark.parametrize("kind", [asked, explored, cancelled], ids=lambda kind: kind.__name__)
async def test_a_record_that_ends_anywhere_replays_to_its_end(tmp_path: Path, kind: Any) -> None:
    """A killed process leaves any prefix of its journal; what one write holds is there whole or not at all."""
    chunks = await kind(tmp_path)
    for end in range(1, len(chunks)):
        if [c.type for c in chunks[end - 1 : end + 1]] in (
            ["message", "usage"],
            ["agent_end", "run_finished"],
        ):
            continue
        found = await replay(chunks[:end])
        assert found.difference is None, (end, chunks[end - 1].type, found.difference)


# ---- what was changed is found


def _with(chunk: Chunk, event: Event) -> Chunk:
    return chunk._replace(event=event, data=encode_event(event))


def _not_compared(event: Event) -> frozenset[str]:
    """The fields of an event that the replay says it does not compare, as in JSON; "*" for all."""
    names: set[str] = set()
    for part in (*LEFT_OUT, *TAKEN):
        if isinstance(event, part.types) and part.within(event):
            names.update(type(event).model_fields[name].alias or name for name in part.fields or ())
            names |= set() if part.fields else {"*"}
    return frozenset(names)


DECIDES: dict[str, tuple[str, ...]] = {
    "run_started": ("prompt", "mode", "tainted"),
    "message": ("calls",),
    "tool_response": ("id",),
    "usage": ("promptTokens", "completionTokens", "cost"),
}
"""Of what is taken from the record: fields from which something on record follows whatever stands in them."""


def _changes(value: Any) -> list[Any]:
    """Other values in place of one in an event."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1]
        case "completed" | "failed" | "cancelled" | "limit":
            return [s for s in ("completed", "failed", "cancelled") if s != value]
        case "act" | "plan" | "ask":
            return [s for s in ("act", "plan") if s != value]
        case str():
            return [f"{value}?"]
        case list():
            return [value[:-1]] if value else []
        case dict():
            return [dict(list(value.items())[:-1])] if value else []
        case _:
            return []


def tampered(chunks: Sequence[Chunk]) -> list[tuple[str, list[Chunk]]]:
    """Every change of one field that decides something in one chunk of a nested run, and every chunk of one left out."""
    found: list[tuple[str, list[Chunk]]] = []
    below = nested(chunks)
    for place, chunk in enumerate(chunks):
        if chunk.run not in below and not isinstance(chunk.event, HandoffStart | HandoffEnd):
            continue
        skipped = _not_compared(chunk.event)
        if "*" not in skipped or chunk.type in ("run_started", "message", "usage"):
            found.append((f"{place} {chunk.type} left out", [*chunks[:place], *chunks[place + 1 :]]))
        data: JsonObject = json.loads(chunk.data)
        names = DECIDES.get(chunk.type, ()) if "*" in skipped or chunk.type in DECIDES else tuple(data)
        for name in names:
            if (name in skipped and name not in DECIDES.get(chunk.type, ())) or name == "texts":
                continue
            for other in _changes(data.get(name)):
                try:
                    event = decode_event(chunk.type, json.dumps({**data, name: other, "texts": {}}))
                except ValueError:
                    continue
                if event == chunk.event:
                    continue
                changed = [*chunks[:place], _with(chunk, event), *chunks[place + 1 :]]
                found.append((f"{place} {chunk.type}.{name}", changed))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_any_changed_chunk_of_a_nested_run_that_decides_something_is_found(
    tmp_path: Path, kind: Any
) -> None:
    chunks = await kind(tmp_path)
    tried = tampered(chunks)
    assert len(tried) > 20
    unseen = [what for what, changed in tried if (await replay(changed)).difference is None]
    assert unseen == []


async def test_the_first_difference_says_in_which_run_it_is_and_where(tmp_path: Path) -> None:
    chunks = await handed(tmp_path)
    place = next(n for n, c in enumerate(chunks) if c.agent == "runner" and c.type == "tool_call")
    chunk, event = chunks[place], chunks[place].event
    assert isinstance(event, ToolCallEvent)
    changed = [*chunks]
    changed[place] = _with(chunk, event.model_copy(update={"tool": "files/read"}))
    found = (await replay(changed)).difference
    assert found is not None
    assert (found.seq, found.run, found.agent) == (chunk.seq, chunk.run, "runner")
    assert found.around == ("coordinator", "coordinator")
    assert [c for c in chunks if c.run == chunk.run][found.step - 1] == chunk
    assert '"tool":"files/read"' in found.recorded
    assert "args" not in found.replayed, "only what differs is shown"


async def test_what_is_not_compared_is_named_and_counted(tmp_path: Path) -> None:
    chunks = await asked(tmp_path)
    named = {each.name: each for each in (await replay(chunks)).normalised}
    assert {
        "question_ids",
        "durations",
        "reasons",
        "told",
        "model",
        "tools",
        "person",
        "requests",
    } <= named.keys()
    assert named["durations"].events == sum(c.type == "tool_response" for c in chunks)
    assert named["question_ids"].events == 4
    assert {named["durations"].kept, named["model"].kept} == {"left_out", "taken"}
    assert all(each.what for each in named.values())


async def test_what_is_named_as_not_compared_makes_no_difference(tmp_path: Path) -> None:
    chunks = await asked(tmp_path)
    changed = [_with(c, c.event.model_copy(update=_otherwise(c.event))) for c in chunks]
    assert changed != chunks
    assert (await replay(changed)).difference is None


def _otherwise(event: Event) -> Json:
    """Other values in the fields that are left out; ids of questions stay those of their answers."""
    others: Json = {"why": "for no reason", "kind": "mcp", "duration_ms": 77_777}
    names = {n for part in LEFT_OUT if isinstance(event, part.types) for n in part.fields}
    return {name: others[name] for name in names & others.keys()}


# ---- forked, resumed, of before


@pytest.mark.parametrize("lines", [handing, exploring], ids=lambda lines: lines.__name__)
async def test_a_forked_session_replays_whole_and_cut_within_a_nested_run(
    tmp_path: Path, lines: Callable[[], tuple[Json, ...]]
) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(tmp_path, *lines())
    session = (await app.runs.run(RunRequest("begin", approvals="all"), Watch())).session_id
    chunks = app.journal.chunks(session)
    for chunk in chunks:
        fork = app.journal.fork_session(session, chunk.seq).session_id
        copy = app.journal.chunks(fork)
        assert not nested(copy) & nested(chunks), "its runs have ids of their own"
        if chunk.type == "message":
            continue  # a reply stands with its usage in one write
        assert (await replay(copy)).difference is None, chunk
    await app.aclose()


def _older(chunk: Chunk, *names: str) -> Chunk:
    """The chunk as a version wrote it that did not know these fields."""
    data = {key: value for key, value in json.loads(chunk.data).items() if key not in names}
    text = json.dumps(data, ensure_ascii=False)
    return chunk._replace(event=decode_event(chunk.type, text), data=text)


@pytest.mark.parametrize("kind", [handed, explored, tasked, copied], ids=lambda kind: kind.__name__)
async def test_journals_of_before_nested_runs_told_so_much_replay_as_well(tmp_path: Path, kind: Any) -> None:
    """Without ids of nested runs, without citations, without the beginning and end of agents."""
    chunks = await kind(tmp_path)
    for names in (("usedBullets",), ("usedBullets", "unattended"), ("usedBullets", "rejected", "plans")):
        old = [_older(c, *names) if c.type in ("handoff_end", "run_finished") else c for c in chunks]
        assert (await replay(old)).difference is None, names
    without = [c for c in chunks if c.type not in ("agent_start", "agent_end")]
    assert (await replay(without)).difference is None
    oldest = [_older(c, "run") if c.type in ("handoff_start", "handoff_end") else c for c in without]
    assert (await replay(oldest)).difference is None


async def test_an_agent_of_a_programs_own_with_a_name_of_ours_is_not_taken_for_ours() -> None:
    """What it makes of its answer by a function of its own is not known to the record."""
    mine = Agent("planner", "You plan.", on_handoff_return=str.upper)
    first = Agent("first", "You hand on.", handoffs=[mine])
    call_it = {"tool": "agent/handoff", "args": {"agent": "planner", "request": "plan"}}
    async with Runner(model=FakeLLM(call_it, "a plan", "Done.")) as runner:
        chunks = [c async for c in runner.stream(first, "begin") if c.type not in EPHEMERAL]
    back = next(c.event for c in chunks if isinstance(c.event, HandoffEnd))
    assert back.result == "A PLAN"
    assert (await replay(chunks)).difference is None
