"""Looks for patterns in a text within a time limit: cheap ones here, all others in a process that can be ended."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from daiku.dataclass import dataclass, field
from daiku.guard.guardrails.matcher import FOUND
from daiku.guard.rules.guardrails.forms import searched_forms

SECONDS = 1.0
"""What one pattern may cost on a text of usual length, in seconds of work."""
PATIENCE = 1 if sys.platform == "win32" else 10
"""So many times that may pass on the clock: on a busy machine work takes longer. On Windows only the clock counts."""
SECONDS_A_MEGABYTE = 0.3
SHORT = 20_000
"""Characters of a text in which cheap patterns are looked for without another process."""
MATCHER = Path(__file__).with_name("matcher.py")
MOST = 4
"""Texts that are searched at a time, each by a process of its own, which is kept for the next text. Others wait: they
take no thread from anybody else."""
NEEDED = ("SYSTEMROOT",)
"""Variables without which Python does not start on some systems; the process is given no others."""
MOST_CHOICES = 6
"""`|` and `?` of a cheap pattern: each may double what is tried at one place."""
LONGEST_CHEAP = 500
"""Characters of a cheap pattern."""
_REPEATING = frozenset("*+{")
Trouble = Literal["", "slow", "unavailable"]


@dataclass(frozen=True, slots=True)
class Search:
    """What came of a search: the pattern that stands in the text, or that could not be looked for and why."""

    pattern: str = ""
    trouble: Trouble = ""

    @property
    def blocks(self) -> bool:
        """Whether the text cannot be let through."""
        return bool(self.pattern)


NOTHING = Search()


@dataclass(slots=True)
class _Matchers:
    """The processes that look for patterns; each does one text at a time."""

    _idle: list[subprocess.Popen[bytes]] = field(default_factory=list["subprocess.Popen[bytes]"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def one(self) -> Generator[subprocess.Popen[bytes]]:
        """A process for one text, kept for the next one if it is still alive. Raises OSError."""
        with self._lock:
            matcher = self._idle.pop() if self._idle else None
        if matcher is None or matcher.poll() is not None:
            matcher = _start()
        try:
            yield matcher
        except BaseException:
            _end(matcher)
            raise
        with self._lock:
            if matcher.poll() is None and len(self._idle) < MOST:
                self._idle.append(matcher)
                return
        _end(matcher)

    def end_all(self) -> None:
        """End those that wait for a text."""
        with self._lock:
            idle, self._idle = self._idle, []
        for matcher in idle:
            _end(matcher)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, thread_name_prefix="daiku-patterns")


@cache
def _matchers() -> _Matchers:
    found = _Matchers()
    atexit.register(found.end_all)
    return found


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable or "python3", "-I", str(MATCHER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in NEEDED if name in os.environ},
    )


def _end(matcher: subprocess.Popen[bytes]) -> None:
    matcher.kill()
    for pipe in (matcher.stdin, matcher.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    matcher.wait()


def is_cheap(pattern: str) -> bool:
    """True only where matching `pattern` takes a bounded number of steps at each place of a text: nothing in it
    repeats, refers back or looks around, and there is little to choose. Most patterns that are words are cheap."""
    choices, at = 0, 0
    if len(pattern) > LONGEST_CHEAP:
        return False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if pattern[at + 1 : at + 2].isdigit():
                return False
            at += 2
            continue
        if char in _REPEATING or (
            char == "(" and pattern[at + 1 : at + 2] == "?" and pattern[at + 2 : at + 3] != ":"
        ):
            return False
        choices += char in "|?"
        at += 1
    return choices <= MOST_CHOICES


async def search(patterns: Sequence[re.Pattern[str]], text: str) -> Search:
    """The first of `patterns` that stands in any form of `text` (`core.guardrails.forms`), or that took too long.
    The event loop goes on meanwhile."""
    if not patterns:
        return NOTHING
    if len(text) <= SHORT and all(is_cheap(each.pattern) for each in patterns):
        forms = searched_forms(text)
        return next((Search(p.pattern) for p in patterns if any(map(p.search, forms))), NOTHING)
    return await asyncio.get_running_loop().run_in_executor(_threads(), _search_outside, patterns, text)


def _search_outside(patterns: Sequence[re.Pattern[str]], text: str) -> Search:
    data = text.encode("utf-8", "surrogatepass")
    seconds = SECONDS + SECONDS_A_MEGABYTE * len(data) / 1_000_000
    asked = [[p.pattern, p.flags & ~re.UNICODE] for p in patterns]
    head = json.dumps({"patterns": asked, "size": len(data), "seconds": seconds}).encode() + b"\n"
    known = 0
    try:
        with _matchers().one() as matcher:
            for said in _answers(matcher, head + data, seconds * PATIENCE):
                if said == FOUND:
                    return Search(patterns[known].pattern)
                known += 1
                if known == len(patterns):
                    break
    except BrokenPipeError:
        return Search(patterns[known].pattern, "slow")
    except OSError:
        return Search(patterns[known].pattern, "unavailable")
    return NOTHING


def _answers(matcher: subprocess.Popen[bytes], request: bytes, seconds: float) -> Generator[bytes]:
    """What `matcher` says of one pattern after the other. Raises BrokenPipeError where it took too long."""
    source, sink = matcher.stdout, matcher.stdin
    assert source is not None, "it was started with pipes"
    assert sink is not None, "it was started with pipes"
    with _ended_after(matcher, seconds):
        sink.write(request)
        sink.flush()
    while True:
        with _ended_after(matcher, seconds):
            said = source.read(1)
        if not said:
            raise BrokenPipeError
        yield said


@contextmanager
def _ended_after(matcher: subprocess.Popen[bytes], seconds: float) -> Generator[None]:
    timer = threading.Timer(seconds, matcher.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
