"""Time-limited search for patterns in a text: cheap patterns in process, all others in a killable process."""

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
from daiku.guard.rules.guardrails.fingerprints import searched_forms

SECONDS = 1.0
"""CPU seconds that one pattern may take on a text of usual length."""
REAL_TIME_FACTOR = 1 if sys.platform == "win32" else 10
"""Factor of SECONDS that may pass in real time, as CPU is shared. On Windows only real time counts."""
SECONDS_A_MEGABYTE = 0.3
"""Additional seconds per megabyte of text."""
SHORT_CHARACTERS = 20_000
"""Maximum characters of a text in which cheap patterns are searched in process."""
MATCHER = Path(__file__).with_name("matcher.py")
MAX_PROCESSES = 4
"""Maximum number of texts searched concurrently, each by its own process, which is reused. Others wait in their own
thread pool."""
ENVIRONMENT = ("SYSTEMROOT",)
"""Environment variables that Python needs to start on some systems; the process gets no others."""
MOST_CHOICES = 6
"""Maximum number of `|` and `?` in a cheap pattern, as each may double the work at a position."""
LONGEST_CHEAP = 500
"""Maximum characters of a cheap pattern."""
_REPEATING = frozenset("*+{")
Trouble = Literal["", "slow", "unavailable"]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search: the pattern that matched, or that could not be searched and why."""

    pattern: str = ""
    trouble: Trouble = ""

    @property
    def blocks(self) -> bool:
        """True if the text must be blocked."""
        return bool(self.pattern)


NO_MATCH = SearchResult()


@dataclass(slots=True)
class _MatcherPool:
    """Pool of processes that search for patterns; each searches one text at a time."""

    _idle: list[subprocess.Popen[bytes]] = field(default_factory=list["subprocess.Popen[bytes]"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def borrow(self) -> Generator[subprocess.Popen[bytes]]:
        """Yield a process for one text; afterwards it is reused if it is still alive. Raises OSError."""
        with self._lock:
            matcher = self._idle.pop() if self._idle else None
        if matcher is None or matcher.poll() is not None:
            matcher = _start_process()
        try:
            yield matcher
        except BaseException:
            _end_process(matcher)
            raise
        with self._lock:
            if matcher.poll() is None and len(self._idle) < MAX_PROCESSES:
                self._idle.append(matcher)
                return
        _end_process(matcher)

    def end_all(self) -> None:
        """End all idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for matcher in idle:
            _end_process(matcher)


@cache
def _get_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_PROCESSES, thread_name_prefix="daiku-patterns")


@cache
def _get_pool() -> _MatcherPool:
    pool = _MatcherPool()
    atexit.register(pool.end_all)
    return pool


def _start_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable or "python3", "-I", str(MATCHER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    )


def _end_process(matcher: subprocess.Popen[bytes]) -> None:
    matcher.kill()
    for pipe in (matcher.stdin, matcher.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    matcher.wait()


def is_cheap(pattern: str) -> bool:
    """Return True if matching `pattern` takes a bounded number of steps at each position.

    Such a pattern has no repetition, backreference, or lookaround, and few choices. Most literal patterns are cheap.
    """
    choices, position = 0, 0
    if len(pattern) > LONGEST_CHEAP:
        return False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            if pattern[position + 1 : position + 2].isdigit():
                return False
            position += 2
            continue
        if char in _REPEATING or (
            char == "("
            and pattern[position + 1 : position + 2] == "?"
            and pattern[position + 2 : position + 3] != ":"
        ):
            return False
        choices += char in "|?"
        position += 1
    return choices <= MOST_CHOICES


async def search(patterns: Sequence[re.Pattern[str]], text: str) -> SearchResult:
    """Return the first of `patterns` that matches any form of `text` (`searched_forms`), or that took too long.

    The event loop is not blocked.
    """
    if not patterns:
        return NO_MATCH
    if len(text) <= SHORT_CHARACTERS and all(is_cheap(pattern.pattern) for pattern in patterns):
        forms = searched_forms(text)
        return next((SearchResult(p.pattern) for p in patterns if any(map(p.search, forms))), NO_MATCH)
    return await asyncio.get_running_loop().run_in_executor(_get_threads(), _search_outside, patterns, text)


def _search_outside(patterns: Sequence[re.Pattern[str]], text: str) -> SearchResult:
    data = text.encode("utf-8", "surrogatepass")
    seconds = SECONDS + SECONDS_A_MEGABYTE * len(data) / 1_000_000
    requested = [[p.pattern, p.flags & ~re.UNICODE] for p in patterns]
    head = json.dumps({"patterns": requested, "size": len(data), "seconds": seconds}).encode() + b"\n"
    index = 0
    try:
        with _get_pool().borrow() as matcher:
            for answer in _read_answers(matcher, head + data, seconds * REAL_TIME_FACTOR):
                if answer == FOUND:
                    return SearchResult(patterns[index].pattern)
                index += 1
                if index == len(patterns):
                    break
    except BrokenPipeError:
        return SearchResult(patterns[index].pattern, "slow")
    except OSError:
        return SearchResult(patterns[index].pattern, "unavailable")
    return NO_MATCH


def _read_answers(matcher: subprocess.Popen[bytes], request: bytes, seconds: float) -> Generator[bytes]:
    """Yield the answer of `matcher` for each pattern. Raises BrokenPipeError if it took too long."""
    source, sink = matcher.stdout, matcher.stdin
    assert source is not None, "it was started with pipes"
    assert sink is not None, "it was started with pipes"
    with _kill_after(matcher, seconds):
        sink.write(request)
        sink.flush()
    while True:
        with _kill_after(matcher, seconds):
            answer = source.read(1)
        if not answer:
            raise BrokenPipeError
        yield answer


@contextmanager
def _kill_after(matcher: subprocess.Popen[bytes], seconds: float) -> Generator[None]:
    """Kill the process unless the block ends within `seconds`."""
    timer = threading.Timer(seconds, matcher.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
