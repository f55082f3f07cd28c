"""The client's terminals, as the tools see them; each is shown with the tool call that runs in it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from acp import Client, RequestError

from daiku.core.ports import TerminalFailed

OUTPUT_BYTES = 5_000_000
SECONDS = 20.0
"""How long a client may take to open a terminal."""
SIGNALLED = 128
Failed = (RequestError, ConnectionError, TimeoutError, ValueError)
"""What a request to the client ends with where it cannot do it, answers with something else, or is gone."""


class ClientTerminals:
    """Implements ports.Terminals for one session. `shown` hears of every terminal, with its call."""

    def __init__(self, client: Client) -> None:
        self.session = ""
        self.shown: Callable[[str, str], None] = _not_shown
        self._client = client

    async def create(self, call_id: str, command: Sequence[str], cwd: Path) -> str:
        try:
            async with asyncio.timeout(SECONDS):
                made = await self._client.create_terminal(
                    self.session, command[0], list(command[1:]), cwd=str(cwd), output_byte_limit=OUTPUT_BYTES
                )
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        self.shown(call_id, made.terminal_id)
        return made.terminal_id

    async def wait(self, terminal: str) -> int:
        try:
            ended = await self._client.wait_for_terminal_exit(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        if ended.exit_code is not None:
            return ended.exit_code
        return SIGNALLED + _number(ended.signal)

    async def output(self, terminal: str) -> str:
        try:
            return (await self._client.terminal_output(self.session, terminal)).output
        except Failed as error:
            raise TerminalFailed(str(error)) from None

    async def kill(self, terminal: str) -> None:
        try:
            await self._client.kill_terminal(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None

    async def release(self, terminal: str) -> None:
        try:
            await self._client.release_terminal(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None


def _not_shown(_call: str, _terminal: str) -> None:
    return None


def _number(name: str | None) -> int:
    """The number of a signal by its name (SIGTERM, TERM, 15); SIGKILL's where it is not known."""
    told = (name or "").upper()
    if told.isdecimal():
        return int(told)
    known = {each.name: each.value for each in signal.Signals}
    return known.get(told if told.startswith("SIG") else f"SIG{told}", signal.SIGKILL)
