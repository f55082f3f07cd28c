"""What a provider's cache may keep of an item: after `kill -9` the model is sent the same beginning once more."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.models import Said, serving
from tests.work.test_worker import Lab, lab

__all__ = ["lab"]
pytestmark = pytest.mark.slow
Json = dict[str, Any]
GATE = {"command": "touch at-gate; until [ -e go ]; do sleep 0.05; done"}
SCRIPT = (
    Said(("I write.",), (("files__write", {"path": "a.txt", "content": "a\n"}),)),
    Said(("I wait.",), (("shell__run", GATE),)),
    Said(("I write again.",), (("files__write", {"path": "b.txt", "content": "b\n"}),)),
    Said(("All is written.",)),
)


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.05)


async def test_after_a_kill_the_model_is_sent_the_same_beginning_once_more(lab: Lab) -> None:
    """S2R.6, S2C.22: the conversation is made again from the journal, message by message; tools and rules are the same."""
    lab.item("mend")
    async with serving(SCRIPT) as service:
        environ = lab.environ | service.environment("openai-chat")

        async def start() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "daiku", *lab.once, cwd=lab.root / "repo", env=environ,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip

        def asked() -> list[Json]:
            found = [each["body"] for each in service.requests if each["path"].endswith("/completions")]
            return [body for body in found if body.get("tools")]

        def at_gate() -> list[Path]:
            return list((lab.root / "home/items").glob("*/at-gate"))

        killed = await start()
        await until(at_gate)
        killed.kill()
        await killed.communicate()
        before = asked()
        assert len(before) == 2
        resumed = await start()
        _, err = await resumed.communicate()
        assert (resumed.returncode, b"Traceback" in err) == (0, False)
        first = asked()[len(before)]
        last = before[-1]
        assert first["tools"] == last["tools"]
        assert first["messages"][: len(last["messages"])] == last["messages"]
        roles = [message["role"] for message in first["messages"][len(last["messages"]) :]]
        assert roles[:2] == ["assistant", "tool"]
    assert lab.git("show", "daiku/mend:b.txt") == "b"
