"""The command itself, as a process: its one line, its signals, its end, and what is left for the next one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.slow

SLOW_REPLY = {"text": " ".join(f"w{i}" for i in range(2000)), "delay_ms": 10}


@dataclass(frozen=True, slots=True)
class Started:
    """A running `daiku serve`."""

    process: subprocess.Popen[bytes]
    url: str
    token: str
    client: httpx2.Client

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(10)


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "DAIKU_HOME": str(home), "DAIKU_LLM__MODEL": "scripted/play.jsonl", **more}


@contextmanager
def started(folder: Path, home: Path, *args: str, **environ: str) -> Generator[Started]:
    command = [sys.executable, "-m", "daiku", "serve", *args]
    with subprocess.Popen(
        command, cwd=folder, env=environment(home, **environ), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            told = json.loads(line)
            assert sorted(told) == ["token", "url"]
            headers = {"authorization": f"Bearer {told['token']}"}
            with httpx2.Client(base_url=told["url"], headers=headers, timeout=20) as client:
                yield Started(process, told["url"], told["token"], client)
        finally:
            process.kill()


def script(folder: Path, *lines: dict[str, Any]) -> None:
    (folder / "play.jsonl").write_text("\n".join(json.dumps(line) for line in lines))


def begin(s: Started) -> tuple[str, str]:
    """Begin a run and leave its stream; session and run."""
    session = s.client.post("/v1/sessions", json={}).json()["sessionId"]
    with s.client.stream("POST", f"/v1/sessions/{session}/runs", json={"text": "go"}) as response:
        for line in response.iter_lines():
            if line.startswith("data: ") and json.loads(line[6:])["type"] == "delta":
                return session, json.loads(line[6:])["run"]
    raise AssertionError("no delta")


def status(s: Started, session: str) -> str:
    return s.client.get(f"/v1/sessions/{session}").json()["session"]["status"]


def test_one_line_is_printed_and_a_signal_ends_it_well(workspace: Path, daiku_home: Path) -> None:
    script(workspace, {"text": "hello"})
    tokens = set[str]()
    for number in (signal.SIGTERM, signal.SIGINT):
        with started(workspace, daiku_home) as s:
            tokens.add(s.token)
            assert s.url.startswith("http://127.0.0.1:")
            assert s.client.get("/v1/sessions").status_code == 200
            assert s.end(number) == 0
            assert s.process.stdout is not None
            assert s.process.stdout.read() == b""
            assert s.process.stderr is not None
            assert s.process.stderr.read() == b""
    assert len(tokens) == 2
    log = (daiku_home / "logs" / "daiku.log").read_text()
    assert not [token for token in tokens if token in log]


def test_at_the_end_runs_are_let_go_and_can_be_resumed(workspace: Path, daiku_home: Path) -> None:
    script(workspace, SLOW_REPLY)
    with started(workspace, daiku_home) as s:
        session, run = begin(s)
        with s.client.stream("GET", f"/v1/sessions/{session}/events") as response:
            lines = response.iter_lines()
            next(lines)
            assert s.end() == 0
            assert list(lines)[-1] == ""  # a whole event, then the end
    script(workspace, {"text": "done"})
    with started(workspace, daiku_home) as s:
        assert status(s, session) == "interrupted"
        answer = s.client.post(f"/v1/runs/{run}/resume")
        assert answer.text.rstrip().rpartition("\n")[2].startswith(f'data: {{"runId":"{run}"')
        assert status(s, session) == "completed"


def test_a_run_of_a_killed_server_is_interrupted_and_resumed_by_the_next(
    workspace: Path, daiku_home: Path
) -> None:
    script(workspace, SLOW_REPLY)
    with started(workspace, daiku_home) as s:
        session, run = begin(s)
        assert s.end(signal.SIGKILL) == -signal.SIGKILL
    script(workspace, {"text": "done"})
    with started(workspace, daiku_home) as s:
        listed = s.client.get("/v1/sessions").json()["sessions"]
        assert [(each["sessionId"], each["status"]) for each in listed] == [(session, "interrupted")]
        before = s.client.get(f"/v1/sessions/{session}").json()["chunks"]
        answer = s.client.post(f"/v1/runs/{run}/resume").text
        result = json.loads(answer.rstrip().rpartition("event: result\ndata: ")[2])
        assert (result["runId"], result["status"], result["text"]) == (run, "completed", "done")
        after = s.client.get(f"/v1/sessions/{session}").json()["chunks"]
        assert after[: len(before)] == before
        assert [chunk["type"] for chunk in after].count("run_finished") == 1


def test_a_client_that_never_reads_does_not_hold_up_the_end(workspace: Path, daiku_home: Path) -> None:
    script(workspace, {"text": "x" * 5_000_000})
    with started(workspace, daiku_home) as s:
        session = s.client.post("/v1/sessions", json={}).json()["sessionId"]
        host, _, port = s.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as stuck:
            head = f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {s.token}"
            stuck.sendall(f"{head}\r\n\r\n".encode())
            answer = s.client.post(f"/v1/sessions/{session}/runs", json={"text": "go"})
            assert '"status":"completed"' in answer.text
            assert s.end() == 0


def test_the_token_is_that_of_the_environment(workspace: Path, daiku_home: Path) -> None:
    script(
        workspace,
        {"text": "hello", "calls": [{"tool": "shell/run", "args": {"command": "env; echo my-own-token-1"}}]},
        {"text": "x"},
    )
    with started(workspace, daiku_home, DAIKU_SERVE_TOKEN="my-own-token-1") as s:
        assert s.token == "my-own-token-1"
        session = s.client.post("/v1/sessions", json={}).json()["sessionId"]
        told = s.client.post(f"/v1/sessions/{session}/runs", json={"text": "go", "approvals": "all"}).text
        assert "tool_response" in told
        assert "DAIKU_SERVE_TOKEN" not in told
        outputs = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
        answers = [each["data"]["result"] for each in outputs if each.get("type") == "tool_response"]
        assert answers
        assert not [answer for answer in answers if "my-own-token-1" in answer]


def test_the_token_that_it_makes_is_blacked_out_of_what_is_kept(workspace: Path, daiku_home: Path) -> None:
    script(workspace, {"text": "{{user}}"})
    with started(workspace, daiku_home) as s:
        session = s.client.post("/v1/sessions", json={}).json()["sessionId"]
        said = {"text": f"my key is {s.token}, say it"}
        assert s.token not in s.client.post(f"/v1/sessions/{session}/runs", json=said).text


def test_a_port_in_use_is_said_in_a_sentence(workspace: Path, daiku_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_serve(workspace, daiku_home, "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Another program is using 127.0.0.1:{port}." in done.stderr
    assert done.stderr.count("\n") == 1


def test_wrong_addresses_and_tokens_are_mistakes_of_usage(workspace: Path, daiku_home: Path) -> None:
    for args, environ in (
        (("--port", "70000"), {}),
        (("--host", "no such host"), {}),
        (("-C", "nowhere"), {}),
        ((), {"DAIKU_SERVE_TOKEN": "with a space"}),
        ((), {"DAIKU_SERVE_TOKEN": "秘密"}),
        (("--host", "0.0.0.0"), {}),
        (("--host", "0.0.0.0"), {"DAIKU_SERVE_TOKEN": "short"}),
    ):
        done = run_serve(workspace, daiku_home, *args, **environ)
        assert (done.returncode, done.stdout) == (2, ""), (args, done.stderr)
        assert done.stderr.startswith("daiku: ")
        assert done.stderr.count("\n") == 1


def test_another_address_than_this_machines_own_wants_a_long_token_and_says_what_it_is(
    workspace: Path, daiku_home: Path
) -> None:
    script(workspace, {"text": "hello"})
    token = "t" * 32
    with started(
        workspace, daiku_home, "--host", "0.0.0.0", "--allow-host", "Daiku.example", DAIKU_SERVE_TOKEN=token
    ) as s:
        assert s.url.startswith("http://127.0.0.1:")
        assert s.client.get("/v1/sessions").status_code == 200
        assert s.client.get("/v1/sessions", headers={"host": "daiku.example"}).status_code == 200
        assert s.client.get("/v1/sessions", headers={"host": "evil.example"}).status_code == 403
        assert s.end() == 0
        assert s.process.stderr is not None
        assert b"not encrypted" in s.process.stderr.read()


# Some machines have no IPv6.
@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_it_listens_on_ipv6(workspace: Path, daiku_home: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no address ::1: a container may have IPv6 sockets without it")
    script(workspace, {"text": "hello"})
    with started(workspace, daiku_home, "--host", "::1") as s:
        assert s.url.startswith("http://[::1]:")
        assert s.client.get("/v1/sessions").status_code == 200


def run_serve(folder: Path, home: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "daiku", "serve", *args]
    env = environment(home, **environ)
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=20, check=False
    )
