"""One request walked from the panel to the file and back, recorded while it runs; `python -m tests.lsp.walk` draws it.

The request is a `daiku/chat` whose model edits one file, which the person allows; it is the second of its kind, so that
what a server does once is not in it. The drawing stands in server/README.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from daiku.playbook.background import BackgroundLearner
from tests.conftest import ROOT
from tests.lsp.conftest import connected, write_script
from tests.lsp.pair import Client

README = ROOT / "server" / "README.md"
START, END = "<!-- walk -->", "<!-- /walk -->"
EDIT = {"tool": "files/edit", "args": {"path": "a.txt", "search": "one", "replace": "two"}}


@contextmanager
def recorded() -> Generator[list[str]]:
    """The modules of the server that are called from another one while the block runs, in the order of their first
    call."""
    found: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("daiku.") and frame.f_code.co_name != "<module>":
            found.setdefault(name)

    order: list[str] = []
    sys.setprofile(profile)
    try:
        yield order
    finally:
        sys.setprofile(None)
        order.extend(found)


async def one_request(workspace: Path) -> list[str]:
    """The modules that take part in the request, in the order in which they are first reached."""
    model = write_script(workspace, {"calls": [EDIT]}, {"text": "Done."})
    file = workspace / "a.txt"
    async with connected(workspace) as server:
        file.write_text("one\n", encoding="utf-8")
        await _chat(server.client, model, "first")
        await _all_learnt()
        file.write_text("one\n", encoding="utf-8")
        with recorded() as order:
            await _chat(server.client, model, "second")
    assert file.read_text(encoding="utf-8") == "two\n"
    return order


async def _all_learnt() -> None:
    """Wait until the server has learnt from the request before: whether it is at it still is chance."""
    learning = {each.__qualname__ for each in (BackgroundLearner._work, BackgroundLearner._reflect_on)}
    while any(getattr(task.get_coro(), "__qualname__", "") in learning for task in asyncio.all_tasks()):
        await asyncio.sleep(0)


async def _chat(client: Client, model: str, token: str) -> None:
    waiting = client.start("daiku/chat", {"text": "go", "model": model, "partialResultToken": token})

    def asked() -> list[dict[str, Any]]:
        return [chunk for chunk in client.chunks(token) if chunk["type"] == "approval_asked"]

    await client.until(lambda: waiting.done() or asked())
    for one in asked():
        answer = {"approvalId": one["data"]["approvalId"], "decision": "allow_once"}
        await client.request("daiku/approve", {"runId": one["run"], **answer})
    await waiting


def rooms(order: list[str]) -> dict[str, list[str]]:
    """The modules by room, rooms in the order in which they are first reached."""
    found: dict[str, list[str]] = {}
    for name in order:
        parts = name.split(".")[1:]
        is_room = (ROOT / "server" / "daiku" / "/".join(parts)).is_dir()
        room = "/".join(parts if is_room else parts[:-1]) or "daiku"
        found.setdefault(room, []).append("__init__" if is_room else parts[-1])
    return found


def drawing(order: list[str]) -> str:
    """The walk as text: a line for each room, with the files of it that take part."""
    found = rooms(order)
    width = max(map(len, found))
    lines = [f"{room.ljust(width)}  {', '.join(sorted(names))}" for room, names in found.items()]
    return "```\n" + "\n".join(lines) + "\n```"


def with_walk(readme: str, drawn: str) -> str:
    """`readme` with the drawing between its markers."""
    head, _, rest = readme.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{drawn}\n{END}{tail}"


def main() -> None:
    """Draw the walk into the README."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DAIKU_HOME"] = f"{folder}/home"
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        order = asyncio.run(one_request(workspace))
    README.write_text(with_walk(README.read_text(encoding="utf-8"), drawing(order)), encoding="utf-8")
    sys.stderr.write(f"{len(order)} modules in {len(rooms(order))} rooms\n")


if __name__ == "__main__":
    main()
