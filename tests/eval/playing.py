"""Tiny tasks, and an evaluation of them in this process."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku.domain.config import SandboxSettings
from daiku.eval.attempt import Setting
from daiku.eval.compare import EvalAttempt, Evaluation
from daiku.eval.copies import read_tasks
from daiku.eval.evaluate import EvaluationPlan, evaluate
from daiku.settings.config import Config

NUMBER = "grep -qx 2 number.txt"


def make_task(folder: Path, name: str, *, more: str = "", checks: str = NUMBER, **files: str) -> Path:
    """A task whose check wants a 2 in number.txt, where a 1 is; `more` is TOML at the top of its file."""
    place = folder / name
    (place / "files").mkdir(parents=True)
    (place / "files" / "number.txt").write_text("1\n", encoding="utf-8")
    for path, content in files.items():
        (place / "files" / path).write_text(content, encoding="utf-8")
    told = checks if checks.startswith("[checks]") else f"[checks]\ncommands = [{json.dumps(checks)}]\n"
    (place / "task.toml").write_text(
        f'summary = "Two"\nrequest = "Write 2 into number.txt ({name})"\nlanguage = "text"\n{more}\n{told}',
        encoding="utf-8",
    )
    return place


def write(path: str, content: str, *, when: str = "", cost: float | None = None) -> dict[str, Any]:
    """A reply of a script that writes a file, whatever was in it."""
    command = f"printf {shlex.quote(content)} > {path}"
    line: dict[str, Any] = {"calls": [{"tool": "shell/run", "args": {"command": command}}]}
    if when:
        line["when"] = when
    if cost is not None:
        line["usage"] = {"promptTokens": 1000, "completionTokens": 10, "cost": cost}
    return line


def script(folder: Path, *lines: dict[str, Any], name: str = "play") -> str:
    """The model that plays `lines`."""
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"scripted/{path}"


def setting(model: str, label: str = "A") -> Setting:
    """A side without a sandbox: a test may start no other programs than the checks' own."""
    return Setting(label, model, Config(sandbox=SandboxSettings(mode="off")))


def run(
    folder: Path,
    home: Path,
    *settings: Setting,
    jobs: int = 1,
    repeat: int = 1,
    max_cost: float = 0.0,
    keep: bool = False,
    tell: Callable[[EvalAttempt, asyncio.Event], None] = lambda _attempt, _stop: None,
) -> Evaluation:
    """Evaluate the tasks of `folder` to the end; `tell` may set the event that stops it."""

    (home / "traces").mkdir(exist_ok=True)

    async def work() -> Evaluation:
        stop = asyncio.Event()
        wanted = EvaluationPlan(read_tasks(folder), settings, home, repeat, jobs, max_cost, keep)
        return await evaluate(wanted, lambda attempt, _n, _of: tell(attempt, stop), stop)

    return asyncio.run(work())
