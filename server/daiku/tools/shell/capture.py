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
from daiku.tools.shell.process import TruncatedOutput, shield_start

DEFAULT_SECONDS = 60
"""Seconds of the default timeout."""
TIMED_OUT = 124
"""Exit code of a program that exceeded its timeout."""
MAX_LIST_BYTES = 16_000_000
"""Bytes of the longest list of names that is read in full."""
_READ_BYTES = 65_536
_MAX_ERRORS = 64_000
"""Bytes of stderr that are stored."""


@dataclass(slots=True)
class ProgramResult:
    """The result of a program. `errors`: its stderr; `failure`: why it was stopped early, or empty."""

    code: int
    errors: str = ""
    failure: str = ""
    _truncated: TruncatedOutput = field(default_factory=TruncatedOutput)
    _full: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """The complete output, if `largest` was given."""
        return self._full.decode("utf-8", "surrogateescape")

    def format_for_model(self, limit: int) -> str:
        """Return the output for a model: without escapes, the middle cut to `limit` characters."""
        return self._truncated.format_for_model(limit)

    async def read(self, stream: asyncio.StreamReader, largest: int) -> None:
        while data := await stream.read(_READ_BYTES):
            self._truncated.add(data)
            if largest:
                self._full += data
                if len(self._full) > largest:
                    self.code, self.failure = 1, "it is too long to be looked through"
                    return


async def run_program(
    argv: list[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str | None,
    largest: int,
    *,
    seconds: float = DEFAULT_SECONDS,
    inherited: tuple[int, ...] = (),
) -> ProgramResult:
    """Run `argv` to its end, at most `seconds`; after that the code is TIMED_OUT. Raises OSError.

    `largest`: bytes of output that are stored in full; more is a failure. `inherited`: descriptors to pass
    beside stdin, stdout, and stderr.
    """
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
    process = await shield_start(starting, _kill)
    assert process.stdout is not None
    assert process.stderr is not None
    result = ProgramResult(0)
    try:
        async with asyncio.timeout(seconds):
            if process.stdin is not None and stdin is not None:
                process.stdin.write(stdin.encode("utf-8", "surrogateescape"))
                process.stdin.close()
            errors = asyncio.ensure_future(_read_errors(process.stderr))
            await result.read(process.stdout, largest)
            if not result.failure:
                result.errors = await errors
                result.code = await process.wait()
            errors.cancel()
    except TimeoutError:
        result.code, result.failure = TIMED_OUT, f"it did not end within {seconds:g} s"
    finally:
        await asyncio.shield(_kill(process))
    return result


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process and its group. Does nothing if it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _read_errors(stream: asyncio.StreamReader) -> str:
    errors = bytearray()
    while data := await stream.read(_READ_BYTES):
        errors += data[: max(0, _MAX_ERRORS - len(errors))]
    return errors.decode("utf-8", "replace")


def wait_for_program(
    argv: list[str], cwd: Path, env: Mapping[str, str], stdin: str, *, seconds: float
) -> tuple[int, str]:
    """Run a program that starts no others, and return its exit code and stdout. Blocks.

    Raises OSError, and TimeoutError after `seconds`.
    """
    try:
        completed = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env),
            input=stdin.encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as timeout:
        raise TimeoutError(str(timeout)) from timeout
    return completed.returncode, completed.stdout.decode("utf-8", "replace")
