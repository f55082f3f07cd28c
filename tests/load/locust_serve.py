"""Load on `daiku serve` by locust: each user has one session and asks in it again and again, reading the stream.

    DAIKU_SERVE_TOKEN=… locust -f tests/load/locust_serve.py --host http://127.0.0.1:PORT --headless -u 100 -r 100 -t 30s

`run` is a request to its last event, `gap` the longest wait between two events of it. A run fails where numbers are
missing, or where its text holds another user's tag (the model has to answer with the `#tag#` of the request, as
`tagged` of tests/bench/server.py does; DAIKU_TAGGED= turns this off).
"""

from __future__ import annotations

import itertools
import json
import os
from time import perf_counter
from typing import Any

from locust import HttpUser, constant, events, task

_numbers = itertools.count(1)
TAGGED = os.environ.get("DAIKU_TAGGED", "1") != ""


class Asker(HttpUser):
    """One conversation."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """Make the session."""
        self.tag = next(_numbers)
        self.client.headers["Authorization"] = f"Bearer {os.environ['DAIKU_SERVE_TOKEN']}"
        self.session = self.client.post("/v1/sessions", json={}, name="session").json()["sessionId"]

    @task
    def converse(self) -> None:
        """Ask, and read to the end."""
        body = {"text": f"go #{self.tag}#", "approvals": "none"}
        path = f"/v1/sessions/{self.session}/runs"
        began = last = perf_counter()
        said, longest, seq, length, problem = "", 0.0, 0, 0, ""
        kind = ""
        with self.client.post(
            path, json=body, stream=True, catch_response=True, name="first byte"
        ) as response:
            for line in response.iter_lines(chunk_size=None):  # pyright: ignore[reportArgumentType]  # as it comes; the stubs know a number only
                length += len(line)
                if line.startswith(b"event: "):
                    now, kind = perf_counter(), line[7:].decode()
                    longest, last = max(longest, now - last), now
                elif line.startswith(b"data: ") and kind == "delta":
                    said += json.loads(line[6:])["data"]["text"]
                elif line.startswith(b"id: "):
                    number = int(line[4:])
                    if seq and number != seq + 1:
                        problem = f"{number} behind {seq}"
                    seq = number
        if kind != "result":
            problem = f"the stream ended with {kind!r}"
        if TAGGED and {word.partition(".")[0] for word in said.split()} != {f"{self.tag:06}"}:
            problem = "the text of another session"
        self._tell("run", perf_counter() - began, length, problem)
        self._tell("gap", longest, 0, "")

    def _tell(self, name: str, seconds: float, length: int, problem: str) -> None:
        told: dict[str, Any] = {
            "request_type": "SSE",
            "name": name,
            "response_time": seconds * 1000,
            "response_length": length,
            "exception": AssertionError(problem) if problem else None,
            "context": {},
        }
        events.request.fire(**told)
