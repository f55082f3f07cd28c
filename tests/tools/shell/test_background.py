"""What a command in the background printed, as it is looked at now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku.settings.config import Config
from daiku.tools.shell.background import MAX_CHARACTERS, BackgroundJob
from daiku.tools.shell.printed import format_news
from daiku.tools.shell.process import TruncatedOutput
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.outputs import Outputs


class Printing:
    """A process that prints what it is told to until it is stopped."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.prints: Callable[[str], object] = str
        self.output = TruncatedOutput()
        self._stopped = asyncio.Event()

    async def finish(self, show: Callable[[str], None], *, limit: bool) -> int:
        def print_(text: str) -> None:
            self.output.add(text.encode())
            show(text)

        self.prints = print_
        await self._stopped.wait()
        return 0

    async def stop(self) -> None:
        self._stopped.set()


async def test_that_something_was_lost_is_said_once() -> None:
    process: Any = Printing()

    async def ended() -> tuple[()]:
        return ()

    job = BackgroundJob("x", process, ended)
    await asyncio.sleep(0)
    process.prints("x" * 1000)
    process.prints("y" * MAX_CHARACTERS)
    assert job.take().startswith("[… 1000 earlier characters are gone …]\n")
    process.prints("news\n")
    assert job.take() == "news\n"
    await job.end()


async def test_news_that_are_too_long_name_the_whole_output_which_stays_under_the_same_name(
    tmp_path: Path,
) -> None:
    process: Any = Printing()
    outputs = Outputs(tmp_path / "outputs")
    workspace = DiskWorkspace((tmp_path,))
    context = ToolContext(
        session="ses_1",
        run="r",
        call_id="c",
        workspace=workspace,
        checkpoints=CheckpointStore(tmp_path / "kept", workspace),
        config=Config(),
        emit=lambda _: None,
        outputs=outputs,
    )

    async def ended() -> tuple[()]:
        return ()

    job = BackgroundJob("x", process, ended)
    await asyncio.sleep(0)
    process.prints("ready\n")
    assert format_news("npm-run-2", job.take(), job, context).whole == ""
    process.prints(
        "".join(f"request {n}\n" for n in range(3000)) + "Error: it fell over\n" + "quiet\n" * 3000
    )
    shown = format_news("npm-run-2", job.take(), job, context)
    assert shown.whole == "output:npm-run-2"
    assert "\nError: it fell over\n" in shown.shown
    assert 'kept as "output:npm-run-2"' in shown.shown
    process.prints("z" * 40_000)
    assert format_news("npm-run-2", job.take(), job, context).whole == "output:npm-run-2"
    whole = outputs.read("ses_1", "output:npm-run-2") or ""
    assert whole.startswith("ready\nrequest 0\n")
    assert whole.endswith("zzz")
    await job.end()
