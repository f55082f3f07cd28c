"""Every other request: what it answers, and what it says of what does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.http.serving import served, until
from tests.runs.playing import shell

REPLY = {"text": "hello"}
PROBLEMS = "problems"


async def test_sessions_are_made_listed_read_and_deleted(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        made = (await s.post("/v1/sessions", title="first")).json()
        assert made["title"] == "first"
        session = made["sessionId"]
        sent = (await s.run(session))[:-1]
        listed = (await s.client.get("/v1/sessions", params={"query": "first"})).json()["sessions"]
        assert [(each["sessionId"], each["status"]) for each in listed] == [(session, "completed")]
        whole = (await s.client.get(f"/v1/sessions/{session}")).json()
        assert whole["session"]["lastSeq"] == sent[-1].seq
        assert whole["chunks"][0]["type"] == "run_started"
        rest = await s.client.get(f"/v1/sessions/{session}", params={"after_seq": sent[-2].seq})
        assert [chunk["seq"] for chunk in rest.json()["chunks"]] == [sent[-1].seq]
        gone = await s.client.delete(f"/v1/sessions/{session}")
        assert (gone.status_code, gone.json()) == (200, None)
        assert (await s.client.get(f"/v1/sessions/{session}")).status_code == 404


async def test_what_there_is_to_choose_from_is_listed(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        models, tools, agents, health = [
            (await s.client.get(path)).json()
            for path in ("/v1/models", "/v1/tools", "/v1/agents", "/healthz")
        ]
    assert models["selected"].startswith("scripted/")
    assert {"files/read", "shell/run"} <= {tool["name"] for tool in tools["tools"]}
    assert {"coordinator", "planner", "coder"} <= {agent["name"] for agent in agents["agents"]}
    assert health == {"status": "ok"}


async def test_an_unknown_session_or_run_is_not_found_and_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        answers = [
            await s.client.get("/v1/sessions/ses_0"),
            await s.client.get("/v1/sessions/ses_0/events"),
            await s.client.delete("/v1/sessions/ses_0"),
            await s.post("/v1/sessions/ses_0/runs", text="go"),
            await s.post("/v1/runs/run_0/resume"),
            await s.post("/v1/runs/run_0/pause"),
            await s.post("/v1/runs/run_0/cancel"),
            await s.post("/v1/runs/run_0/steer", text="x"),
            await s.post("/v1/runs/run_0/answer", inputId="i", text="x"),
            await s.post("/v1/runs/run_0/approve", approvalId="a", decision="allow_once"),
        ]
    for answer in answers:
        assert answer.status_code == 404, answer.request.url
        assert answer.json()["kind"] == "not_found"
        assert answer.json()["message"]
        assert answer.json()["hint"]


async def test_an_id_is_no_path(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        for name in ("..%2f..%2fetc", "%2e%2e", "a%00b", "a%0d%0aX-Evil:1", "x" * 201, "%ff", "セッション"):
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/runs")):
                body = {"text": "go"} if method == "POST" else None
                answer = await s.client.request(method, f"/v1/sessions/{name}{path}", json=body)
                assert answer.status_code == 404, (method, name)
                assert "x-evil" not in answer.headers


async def test_a_body_that_does_not_fit_is_answered_with_every_problem(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        path = f"/v1/sessions/{await s.session()}/runs"
        for body, problems in (
            ({}, ["text"]),
            ({"text": 5, "mode": "fly", "context": {}}, ["text", "mode", "context"]),
            ({"text": " \n"}, ["text"]),
            ({"text": "go", "approvals": "yes"}, ["approvals"]),
            ({"text": "go", "colour": "red"}, ["colour"]),
            ({"text": "go", "context": [{"kind": "file", "uri": 7}]}, ["context.0.uri"]),
            ({"text": "go", "limits": {"maxRounds": -1}}, ["limits.maxRounds"]),
            ([], ["body"]),
            ("text", ["body"]),
            (None, ["body"]),
        ):
            answer = await s.client.post(
                path, content=json.dumps(body), headers={"content-type": "application/json"}
            )
            assert answer.status_code == 422, body
            assert [problem.partition(":")[0] for problem in answer.json()[PROBLEMS]] == problems
        for text in (b"{", b"\xff", b'{"text": "\\ud800"}', b"[" * 100_000, b'{"text": NaN}', b"{}{}"):
            answer = await s.client.post(path, content=text, headers={"content-type": "application/json"})
            assert answer.status_code == 422, text[:20]
            assert answer.json()[PROBLEMS]


async def test_only_json_is_taken(tmp_path: Path) -> None:
    """What a form of a web page can send without being asked for leave is none."""
    async with served(tmp_path, REPLY) as s:
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "",
        ):
            answer = await s.client.post("/v1/sessions", content=b"{}", headers={"content-type": kind})
            assert answer.status_code == 415, kind
        said = await s.client.post(
            "/v1/sessions", content=b"{}", headers={"content-type": "Application/JSON; charset=utf-8"}
        )
        assert said.status_code == 200
        assert (await s.client.post("/v1/sessions")).status_code == 200


async def test_a_place_to_go_on_from_is_a_number(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        session = await s.session()
        for wrong in ("-1", "x", "1e9", "9" * 30, str(2**53), "0x10", "1;2"):
            by_header = await s.client.get(f"/v1/sessions/{session}/events", headers={"last-event-id": wrong})
            by_query = await s.client.get(f"/v1/sessions/{session}/events", params={"after_seq": wrong})
            assert (by_header.status_code, by_query.status_code) == (422, 422), wrong
        last = (await s.run(session))[-2]
        path, after = f"/v1/sessions/{session}/events?after_seq=1", {"last-event-id": str(last.seq - 1)}
        async with s.client.stream("GET", path, headers=after) as response:
            assert response.status_code == 200
            assert [line async for line in _first(response, 1)] == [f"id: {last.seq}"]


async def _first(response, count: int):
    async for line in response.aiter_lines():
        yield line
        if not (count := count - 1):
            return


async def test_an_unknown_agent_or_model_is_named_with_what_there_is(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        path = f"/v1/sessions/{await s.session()}/runs"
        agent = await s.post(path, text="go", agent="nobody")
        assert agent.status_code == 404
        assert "coordinator" in agent.json()["hint"]
        model = await s.post(path, text="go", model="nobody/none")
        assert model.status_code == 422
        assert "anthropic" in model.json()["hint"]
        assert model.json()[PROBLEMS] == [model.json()["message"]]
        assert (await s.client.get(path.removesuffix("/runs"))).json()["chunks"] == []


async def test_agent_mode_model_and_context_are_the_runs(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY, REPLY) as s:
        (s.folder / "other.jsonl").write_text('{"text": "from another model"}')
        (s.folder / "project" / "a.txt").write_text("x")
        item = {"kind": "file", "uri": (s.folder / "project" / "a.txt").as_uri()}
        model = f"scripted/{s.folder / 'other.jsonl'}"
        sent = await s.run(
            await s.session(), agent="explorer", mode="ask", model=model, context=[item], approvals="none"
        )
        started = sent[0].json
        assert started["agent"] == "explorer"
        assert (started["data"]["mode"], started["data"]["model"]) == ("ask", model)
        assert [each["path"] for each in started["data"]["context"]] == ["a.txt"]
        assert "another model" in sent[-1].json["text"]


async def test_a_second_run_in_a_session_waits_its_turn(tmp_path: Path) -> None:
    async with served(tmp_path, {"calls": [shell("touch x")]}, REPLY) as s:
        session = await s.session()
        async with s.running(session) as events:
            asked = (await until(events, "approval_asked"))[-1].json
            busy = await s.post(f"/v1/sessions/{session}/runs", text="me too")
            assert (busy.status_code, busy.json()["kind"]) == (409, "busy")
            kept = await s.client.delete(f"/v1/sessions/{session}")
            assert kept.status_code == 409
            ended = await s.post(f"/v1/runs/{asked['run']}/cancel")
            assert ended.json()["status"] == "cancelled"
            assert [sent async for sent in events][-1].json["status"] == "cancelled"


async def test_a_run_is_paused_and_resumed_as_a_stream(tmp_path: Path) -> None:
    async with served(tmp_path, {"calls": [shell("touch x")]}, REPLY) as s:
        session = await s.session()
        async with s.following(session) as all_events, s.running(session) as events:
            asked = (await until(events, "approval_asked"))[-1]
            run = asked.json["run"]
            assert (await s.post(f"/v1/runs/{run}/pause")).json()["status"] == "paused"
            assert [sent async for sent in events][-1].json["status"] == "paused"
            answer = {"approvalId": asked.json["data"]["approvalId"], "decision": "allow_once"}
            assert (await s.post(f"/v1/runs/{run}/approve", runId=run, **answer)).json() is None
            await until(all_events, "approval_given")  # written beside any run, shown all the same
            again = await s.post(f"/v1/runs/{run}/approve", **answer)
            assert again.status_code == 409
            async with s.client.stream("POST", f"/v1/runs/{run}/resume") as response:
                assert response.headers["content-type"] == "text/event-stream"
                rest = await response.aread()
            assert (
                rest.rstrip()
                .rpartition(b"event: result\ndata: ")[2]
                .startswith(b'{"runId":"%s"' % run.encode())
            )
            assert (await until(all_events, "run_finished"))[-1].json["data"]["status"] == "completed"
        other = await s.post(f"/v1/runs/{run}/cancel", runId="run_other")
        assert other.status_code == 422
        over = await s.post(f"/v1/runs/{run}/steer", text="x")
        assert over.status_code == 409


async def test_what_is_wrong_is_said_in_the_clients_language(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        answer = await s.client.get("/v1/sessions/ses_0", headers={"accept-language": "ja-JP, en;q=0.5"})
    assert "セッション" in answer.json()["message"] or "会話" in answer.json()["message"]


async def test_other_addresses_and_methods_are_answered_as_json(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        for method, path, status in (
            ("GET", "/", 404), ("GET", "/v1", 404), ("GET", "/v1/sessions/", 404), ("PUT", "/v1/sessions", 405),
            ("GET", "/v1/runs/run_0/cancel", 405), ("TRACE", "/v1/agents", 405),
        ):  # fmt: skip
            answer = await s.client.request(method, path)
            assert answer.status_code == status, path
            assert answer.json()["message"]
        head = await s.client.head(f"/v1/sessions/{await s.session()}/events")
        assert (head.status_code, head.content) == (200, b"")


async def test_what_nobody_expected_says_its_class_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, REPLY) as s:

        def broken(*_: object) -> None:
            raise RuntimeError("a-secret-path")

        monkeypatch.setattr(s.app.journal, "list_sessions", broken)
        answer = await s.client.get("/v1/sessions")
        assert answer.status_code == 500
        assert "RuntimeError" in answer.json()["message"]
        assert "a-secret-path" not in answer.text
