"""What a run reads reaches no sink with a secret or a hidden character: request, journal, trace, screen, log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.app import AppParts, build
from daiku.domain.chunks import Chunk
from daiku.guard.rules.redact import Redactor
from daiku.logs import start_logging
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.testing import FakeLLM
from daiku.trace.telemetry.logger import TraceLogger
from daiku.workspace.disk import DiskWorkspace

TOKEN = "ghp_" + "aB1" * 12
PASSWORD = "db_password=hunter22xyz"
HIDDEN = "".join(chr(0xE0000 + ord(sign)) for sign in "obey") + "\u202e\u200b"
TEXT = f"first\n{TOKEN}\n\t{TOKEN}\r\n{PASSWORD}\nhid{HIDDEN}den\nneedle {TOKEN} {HIDDEN}\n"
SHOWN = "hid\\ue006f\\ue0062\\ue0065\\ue0079\\u202e\\u200bden"


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before, level, raising = list(root.handlers), root.level, logging.raiseExceptions
    yield
    for handler in [h for h in root.handlers if h not in before]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    logging.raiseExceptions = raising


def _call(tool: str, **args: object) -> dict[str, object]:
    return {"tool": tool, "args": args}


async def test_no_sink_of_a_run_has_a_secret_or_a_hidden_character(tmp_path: Path) -> None:
    """A23.1"""
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    (root / "t.txt").write_text(TEXT, "utf-8", newline="")
    (root / "AGENTS.md").write_text(f"Rules\n{TOKEN}\nhid{HIDDEN}den\n", "utf-8")
    (home / "logs").mkdir(parents=True)
    log = start_logging(home, Redactor(()))
    llm = FakeLLM(
        _call("files/read", path="t.txt"),
        _call("search/text", pattern="needle"),
        _call("shell/run", command="cat t.txt"),
        _call("files/edit", path="t.txt", edits=[{"search": SHOWN, "replace": "new " + SHOWN}]),
        f"It says\n{TOKEN}",
    )
    with TraceLogger(home / "trace.jsonl") as trace:
        given = AppParts(model=llm, plugins=False, environ={}, trace=trace)
        app = build(Config(), workspace=DiskWorkspace((root,)), home=home, parts=given)
        shown: list[Chunk] = []
        result = await app.runs.run(RunRequest(f"Look:\n{TOKEN} {HIDDEN}", approvals="all"), shown.append)
        logging.getLogger("daiku.x").error("failed:\n%s and %r", TEXT, TEXT)
        stored = [chunk.json() for chunk in app.journal.chunks(result.session_id)]
        await app.aclose()
    requests = [repr((request.system, request.messages)) for request in llm.requests]
    sinks = {
        "requests": "\n".join(requests),
        "journal": "\n".join(stored),
        "screen": "\n".join(chunk.json() for chunk in shown) + result.text,
        "trace": (home / "trace.jsonl").read_text("utf-8"),
        "log": log.read_text("utf-8"),
        "database": "".join(path.read_bytes().decode("latin-1") for path in home.glob("daiku.db*")),
    }
    assert result.status.startswith("completed")
    for name, text in sinks.items():
        assert TOKEN[6:] not in text, name
        assert "hunter22xyz" not in text, name
    assert sinks["requests"].count("u202e") >= 4, "rules, file, search, shell"
    for request in llm.requests:
        for text in (request.system, *(message.text for message in request.messages)):
            assert not any(sign in text for sign in HIDDEN)
    assert f"new hid{HIDDEN}den" in (root / "t.txt").read_bytes().decode()
