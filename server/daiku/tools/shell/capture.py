"""Run a program to its end, capturing stdout and stderr separately, both bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass, field
from daiku.tools.shell.output import TruncatedOutput
from daiku.tools.shell.process import started

SECONDS = 60
TOO_LATE = 124
"""The exit code of what was ended because it took too long."""
LARGEST_LIST = 16_000_000
"""Bytes of a list of names that is read as a whole."""
_READ = 65_536
_ERRORS = 64_000


@dataclass(slots=True)
class ProgramResult:
    """What came of one program. `errors` is what it wrote to stderr; `failure` why it was ended before it
    was done, empty where it was not."""

    code: int
    errors: str = ""
    failure: str = ""
    _kept: TruncatedOutput = field(default_factory=TruncatedOutput)
    _whole: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """All of the output, where a list was asked for."""
        return self._whole.decode("utf-8", "surrogateescape")

    def shown(self, limit: int) -> str:
        """The output for a model: without escapes, cut in its middle to `limit` characters."""
        return self._kept.shown(limit)

    async def take(self, stream: asyncio.StreamReader, largest: int) -> None:
        while data := await stream.read(_READ):
            self._kept.add(data)
            if largest:
                self._whole += data
                if len(self._whole) > largest:
                    self.code, self.failure = 1, "it is too long to be looked through"
                    return


async def run_program(
    argv: list[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str | None,
    largest: int,
    *,
    seconds: float = SECONDS,
    inherited: tuple[int, ...] = (),
) -> ProgramResult:
    """Run `argv` to its end, at most `seconds`; then its code is TOO_LATE. `largest`: bytes of output that are kept
    as a whole; more is a failure. `inherited`: descriptors that it gets beside its three. Raises OSError."""
    starting = asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        pass_fds=inherited,
    )
    process = await started(starting, _kill)
    assert process.stdout is not None
    assert process.stderr is not None
    done = ProgramResult(0)
    try:
        async with asyncio.timeout(seconds):
            if process.stdin is not None and stdin is not None:
                process.stdin.write(stdin.encode("utf-8", "surrogateescape"))
                process.stdin.close()
            errors = asyncio.ensure_future(_errors(process.stderr))
            await done.take(process.stdout, largest)
            if not done.failure:
                done.errors = await errors
                done.code = await process.wait()
            errors.cancel()
    except TimeoutError:
        done.code, done.failure = TOO_LATE, f"it did not end within {seconds:g} s"
    finally:
        await asyncio.shield(_kill(process))
    return done


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End it and what it started; does nothing when it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _errors(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while data := await stream.read(_READ):
        kept += data[: max(0, _ERRORS - len(kept))]
    return kept.decode("utf-8", "replace")


def wait_for_program(
    argv: list[str], cwd: Path, env: Mapping[str, str], stdin: str, *, seconds: float
) -> tuple[int, str]:
    """Run a program that starts no others, and return its exit code and stdout. Blocks.

    Raises OSError, and TimeoutError after `seconds`."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env),
            input=stdin.encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise TimeoutError(str(late)) from late
    return done.returncode, done.stdout.decode("utf-8", "replace")
