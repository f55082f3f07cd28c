"""Runs streamed over HTTP: order, the journal's bytes, going on behind any event, readers that leave or are slow."""

from __future__ import annotations

from pathlib import Path

from tests.http.serving import Sent, served, until
from tests.runs.playing import shell

REPLY = {"text": "one two three four five"}


async def test_a_run_streams_its_chunks_in_order_and_its_result_last(tmp_path: Path) -> None:
    """R1.88, R1.72: numbers rise by one, the deltas make up the message, `result` ends the stream."""
    async with served(tmp_path, REPLY) as s:
        sent = await s.run(await s.session())
    *chunks, result = sent
    assert [c.seq for c in chunks] == list(range(1, len(chunks) + 1))
    assert [chunks[0].type, chunks[-1].type] == ["run_started", "run_finished"]
    assert "".join(c.json["data"]["text"] for c in chunks if c.type == "delta") == REPLY["text"]
    assert (result.type, result.id) == ("result", "")
    assert result.json["status"] == "completed"
    assert result.json["text"] == REPLY["text"]
    assert result.json["lastSeq"] == chunks[-1].seq


async def test_each_event_is_the_chunk_as_it_is_on_record(tmp_path: Path) -> None:
    """R1.9, R1.68, R1.69, R1.70: id, event and data are the chunk's, byte for byte."""
    async with served(tmp_path, {"text": '“ひ” \u2028 \r\n \\ "q" 😀'}) as s:
        session = await s.session()
        sent = (await s.run(session))[:-1]
        recorded = {chunk.seq: chunk for chunk in s.app.journal.chunks(session)}
    assert {"run_started", "message", "run_finished"} <= {
        recorded[e.seq].type for e in sent if e.seq in recorded
    }
    for event in sent:
        value = event.json
        assert (value["seq"], value["type"], value["session"]) == (event.seq, event.type, session)
        assert value["agent"] == "coordinator"
        assert value["time"].endswith("Z")
        if event.seq in recorded:
            assert event.data == recorded.pop(event.seq).json()
    assert not recorded


async def test_a_stream_cut_at_any_event_goes_on_behind_it(tmp_path: Path) -> None:
    """R1.73: whatever was shown before the cut and comes after it is the whole, the durable events exactly once."""
    async with served(tmp_path, {"text": "look", "calls": [shell("echo hello")]}, REPLY) as s:
        session = await s.session()
        whole = (await s.run(session, approvals="all"))[:-1]
        durable = {chunk.seq for chunk in s.app.journal.chunks(session)}
        for place in range(len(whole) + 1):
            seen, after = whole[:place], whole[place - 1].seq if place else 0
            expected = [sent for sent in whole[place:] if sent.seq in durable]
            async with s.following(session, after) as events:
                rest = await until(events, "run_finished") if expected else list[Sent]()
            assert rest == expected, f"cut behind {len(seen)}"


async def test_a_live_stream_cut_at_any_event_loses_not_even_a_delta(tmp_path: Path) -> None:
    """R1.73: while the run goes on, what a client missed for a moment is still held."""
    slow = {"text": " ".join(f"w{i}" for i in range(30)), "delay_ms": 5}
    async with served(tmp_path, slow) as s:
        for cut in range(1, 30, 4):
            session = await s.session()
            seen = list[Sent]()
            async with s.running(session) as events:
                async for sent in events:
                    seen.append(sent)
                    if len(seen) == cut:
                        break
            async with s.following(session, seen[-1].seq) as events:
                seen += await until(events, "run_finished")
            assert [sent.seq for sent in seen] == list(range(1, len(seen) + 1)), f"cut behind {cut}"


async def test_a_run_goes_on_when_its_client_goes_away(tmp_path: Path) -> None:
    async with served(tmp_path, {"text": "a b c d e f", "delay_ms": 5}) as s:
        session = await s.session()
        async with s.following(session) as events:
            async with s.running(session) as own:
                await until(own, "delta")
            ended = (await until(events, "run_finished"))[-1]
        assert ended.json["data"]["status"] == "completed"


async def test_events_stay_open_behind_the_end_of_a_run(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY, {"text": "more"}) as s:
        session = await s.session()
        async with s.following(session) as events:
            await s.run(session)
            first = await until(events, "run_finished")
            await s.run(session, "and now")
            second = await until(events, "run_finished")
    seqs = [sent.seq for sent in first + second]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_an_approval_is_waited_for_and_given_over_http(tmp_path: Path) -> None:
    async with served(tmp_path, {"calls": [shell("echo hello > said")]}, REPLY) as s:
        async with s.running(await s.session()) as events:
            asked = (await until(events, "approval_asked"))[-1].json
            path = f"/v1/runs/{asked['run']}/approve"
            given = await s.post(path, approvalId=asked["data"]["approvalId"], decision="allow_once")
            assert (given.status_code, given.json()) == (200, None)
            rest = [sent async for sent in events]
        assert [sent.json["data"]["ok"] for sent in rest if sent.type == "tool_response"] == [True]
        assert rest[-1].json["status"] == "completed"
        assert (s.folder / "project" / "said").exists()


async def test_a_stream_of_a_session_that_is_deleted_ends(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        session = await s.session()
        async with s.following(session) as events:
            assert (await s.client.delete(f"/v1/sessions/{session}")).status_code == 200
            assert [sent async for sent in events] == []
