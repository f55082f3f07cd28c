"""A folder with a script that plays the model, and the command line called in this process."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daiku.fronts.cli.main import main


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Daiku = Callable[..., Done]


@pytest.fixture(autouse=True)
def quiet_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command starts logging to a file: afterwards the process is as it was."""
    root = logging.getLogger()
    before, level, raising = list(root.handlers), root.level, logging.raiseExceptions
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    yield
    for handler in [h for h in root.handlers if h not in before]:
        root.removeHandler(handler)
        handler.close()
    for handler in before:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(level)
    logging.raiseExceptions = raising


@pytest.fixture
def script(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a script of replies into the workspace; the model's name. The workspace is the current folder."""
    monkeypatch.chdir(workspace)

    def write(*lines: dict[str, Any]) -> str:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (workspace / "play.jsonl").write_text(text, encoding="utf-8")
        return "scripted/play.jsonl"

    return write


@pytest.fixture
def daiku(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Daiku:
    """Call the command line; nobody is at the terminal."""

    def call(*args: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(list(args))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A tool call of a script."""
    return {"tool": tool, "args": args}
