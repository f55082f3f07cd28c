"""`daiku run --json` tells the same story whichever protocol the model's service speaks."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.services.models import MODEL, PROTOCOLS, Protocol, Said, serving

Json = dict[str, Any]
SCRIPT = (
    Said(
        ["I read ", "both files", " first. 日本語も。"],
        [("files__read", {"path": "a.txt"}), ("files__read", {"path": "b.txt"})],
    ),
    Said(["Now I change a.txt."], [("files__write", {"path": "a.txt", "content": "changed 日本\n"})]),
    Said([], [("shell__run", {"command": "cat a.txt && exit 3"})]),
    Said(["Done: ", "**a.txt** is changed."]),
)
RANDOM_ID = re.compile(r"\b(ses|run|call|appr|input|checkpoint)_[0-9a-f]{8,}\b|\b(call|toolu|fc)_\d+_\d+\b")


async def run_daiku(folder: Path, environ: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of the real command as its own process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "daiku",
        *arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def plain(line: str, protocol: Protocol, names: dict[str, str]) -> Json:
    """A chunk without what may differ: ids (numbered as they come), times, the service's name."""
    chunk: Json = json.loads(RANDOM_ID.sub(lambda m: names.setdefault(m[0], f"id{len(names)}"), line))
    del chunk["time"]
    text = json.dumps(chunk, ensure_ascii=False, sort_keys=True)
    text = re.sub(r'("durationMs": |after )[0-9.]+', r"\g<1>0", text)
    return json.loads(text.replace(f"{protocol.split('-')[0]}/{MODEL}", MODEL))


async def story(protocol: Protocol, folder: Path) -> list[Json]:
    project, home = folder / "project", folder / "home"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    async with serving(SCRIPT) as service:
        environ = {**service.environment(protocol), "DAIKU_HOME": str(home), "DAIKU_SANDBOX__MODE": "off"}
        code, out, err = await run_daiku(
            project, environ, "run", "Change a.txt", "--json", "--approve", "all"
        )
    assert code == 0, (protocol, err, out[-2000:])
    assert (project / "a.txt").read_text() == "changed 日本\n"
    lines = out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1)), protocol
    names: dict[str, str] = {}
    here = json.dumps(str(folder))[1:-1]  # the run says in which folder it works
    return [plain(line.replace(here, ""), protocol, names) for line in lines]


@pytest.mark.slow(seconds=20)  # it starts the command once for each protocol
async def test_six_protocols_give_the_same_chunks_but_for_ids(tmp_path: Path) -> None:
    stories = {p: await story(p, tmp_path / p) for p in PROTOCOLS}
    first = stories["openai-chat"]
    assert (first[0]["type"], first[-1]["type"]) == ("run_started", "run_finished")
    assert "".join(c["data"]["text"] for c in first if c["type"] == "delta").startswith("I read both files")
    for protocol, chunks in stories.items():
        for mine, theirs in zip(chunks, first, strict=True):
            assert mine == theirs, protocol
