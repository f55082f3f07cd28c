"""One trial: a run on record is done again in a copy of the project, and its checks are executed there."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from daiku.app import App, Given, build
from daiku.dataclass import dataclass, field
from daiku.domain.base import new_id
from daiku.domain.chunks import Chunk
from daiku.domain.config import SandboxSettings
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import RunFinished
from daiku.domain.held import Lesson
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits, RunResult, has_answer
from daiku.domain.trials import Arm, Case, CheckEnd, Trial
from daiku.llm.families import Model
from daiku.runs import RunRequest
from daiku.sdk.trials.copies import copy_project
from daiku.settings.config import (
    Config,
    MemorySettings,
    PlaybookSettings,
    PluginSettings,
    StorageSettings,
    TraceSettings,
)
from daiku.store.copyfolders import close_copy_folder, open_copy_folder
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.sandbox import own_scratch, sandbox_state
from daiku.tools.shell.background import ending_with_the_block
from daiku.tools.shell.lines import Where, run_line
from daiku.workspace.disk import DiskWorkspace

SANDBOX = SandboxSettings(mode="strict")
LONGEST_RUN = 900
"""Seconds of a run where the settings say nothing: nobody is there to stop it."""
MOST_ROUNDS = 60
"""Rounds of a run where the settings allow more."""
CHECK_SECONDS = 300.0
NOT_THERE = (126, 127)
"""The exit codes of a shell that cannot start a program: what git does not hold is not in the copy either."""
NOT_ASKED = frozenset({"auth", "no_provider", "rate_limit", "overloaded", "connection", "timeout"})
"""Failures that are the service's, or the settings', and not the model's."""


@dataclass(frozen=True, slots=True)
class Trying:
    """By what trials are made: the person's settings, Daiku's home, and the model, where it is not that of the settings.
    It remembers of each case whether it can be tried."""

    config: Config
    home: Path
    model: Model | None = None
    locale: str = "en"
    known: dict[str, Text] = field(default_factory=dict[str, Text])


@dataclass(slots=True)
class _Seen:
    """What a run showed so far."""

    usage: Usage = Usage()
    used: tuple[str, ...] = ()

    def __call__(self, chunk: Chunk) -> None:
        match chunk.event:
            case Usage() as call:
                self.usage = self.usage.plus(call)
            case RunFinished(used_bullets=used) if chunk.parent is None:
                self.used = used
            case _:
                pass


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A trial under way: in `folder`, which goes with it."""

    case: Case
    lessons: tuple[Lesson, ...]
    trying: Trying
    folder: Path
    max_cost: float
    seen: _Seen = field(default_factory=_Seen)

    @property
    def copy(self) -> Path:
        return self.folder / "project"

    @property
    def where(self) -> Where:
        return Where(self.copy / self.case.start.inside, SANDBOX)


def why_not(trying: Trying) -> Text:
    """Why nothing can be tried here, before anything is asked; empty where it can."""
    if trying.config.approvals.command == "deny":
        return text("trials.commands_denied")
    return NO_TEXT if sandbox_state(SANDBOX) == "on" else text("trials.no_sandbox")


async def try_case(
    case: Case, lessons: Sequence[Lesson], trying: Trying, *, arm: Arm, nth: int = 1, max_cost: float = 0.0
) -> Trial:
    """Do the case again, told exactly `lessons`; `nth` is its round. `max_cost` (USD) bounds it besides the settings'
    limits; 0: nothing does. Whatever is wrong is a value: `passed` is None. Cancelled, nothing of it is left behind."""
    made, began = Trial(case=case.run, arm=arm, round=nth), time.monotonic()
    if why := await asyncio.to_thread(why_not, trying):
        return made.model_copy(update={"why": why})
    seen = _Seen()
    try:
        copies = await asyncio.to_thread(open_copy_folder, trying.home / "trials", new_id("tr"))
        try:
            attempt = _Attempt(case, tuple(lessons), trying, copies.path, max_cost, seen)
            made = await _tried(attempt, made)
        finally:
            await asyncio.shield(asyncio.to_thread(close_copy_folder, copies, keep=False))
    except DaikuError as wrong:
        made = made.model_copy(update={"why": _told(wrong.failure)})
    except OSError as wrong:
        made = made.model_copy(update={"why": Text(str(wrong))})
    tokens = seen.usage.prompt_tokens + seen.usage.completion_tokens
    spent = {"cost": seen.usage.cost or 0.0, "tokens": tokens, "seconds": time.monotonic() - began}
    return made.model_copy(update={**spent, "used": seen.used})


async def _tried(attempt: _Attempt, made: Trial) -> Trial:
    """Find out whether the checks say anything, then run in a new copy, and check. Raises DaikuError, OSError."""
    known, case = attempt.trying.known, attempt.case
    if case.run not in known:
        known[case.run] = await _says_nothing(attempt)
    why = known[case.run] or await copy_project(case.start, attempt.copy)
    if why:
        return made.model_copy(update={"why": why})
    with own_scratch():
        result = await _run(attempt)
    if result.error is not None and result.error.kind in NOT_ASKED:
        return made.model_copy(update={"why": _told(result.error)})
    if _cut_short(attempt, result):
        return made.model_copy(update={"why": text("trials.bound")})
    with own_scratch():  # what the run left in its /tmp or home must not help, or trip up, the checks
        checks = await _checked(attempt)
    passed = has_answer(result.status) and all(check.ok for check in checks)
    reasons = [text("trials.check_failed", command=c.command, code=c.exit_code) for c in checks if not c.ok]
    reasons += [_told(result.error)] if result.error is not None else []
    return made.model_copy(
        update={
            "passed": passed,
            "checks": checks,
            "why": joined("sentences", reasons) if reasons else NO_TEXT,
        }
    )


async def _says_nothing(attempt: _Attempt) -> Text:
    """Why the case cannot be tried: no copy can be made, or its checks pass in it before anything is done. The copy is
    taken away: whatever the checks left there must not help a run. Raises OSError."""
    why = await copy_project(attempt.case.start, attempt.copy)
    if not why:
        with own_scratch():
            why = _of_no_use(await _checked(attempt))
    await asyncio.to_thread(shutil.rmtree, attempt.copy, ignore_errors=True)
    return why


def _of_no_use(checks: Sequence[CheckEnd]) -> Text:
    """Why checks that were executed before anything is done show nothing; empty where they do."""
    if all(check.ok for check in checks):
        return text("trials.passes_anyway")
    missing = next((check for check in checks if check.exit_code in NOT_THERE), None)
    return NO_TEXT if missing is None else text("trials.not_there", command=missing.command)


async def _checked(attempt: _Attempt) -> tuple[CheckEnd, ...]:
    """How the checks end in the copy as it stands now."""
    ended: list[CheckEnd] = []
    for check in attempt.case.checks:
        done = await run_line(check.command, attempt.where, CHECK_SECONDS)
        ok = done.code == check.exit_code
        ended.append(CheckEnd(command=check.command, ok=ok, exit_code=done.code, seconds=done.seconds))
    return tuple(ended)


async def _run(attempt: _Attempt) -> RunResult:
    """The run itself, by nothing but the settings' model: its journal is its own and goes with the copy. Raises DaikuError."""
    app = _app(attempt)
    try:
        async with ending_with_the_block():
            return await app.runs.run(_request(attempt), attempt.seen)
    finally:
        await asyncio.shield(app.aclose())


def _app(attempt: _Attempt) -> App:
    config, trying = _alone(attempt.trying.config), attempt.trying
    given = Given(model=trying.model, plugins=False)
    workspace = DiskWorkspace((attempt.where.folder,))
    return build(config, workspace=workspace, home=attempt.folder / "home", locale=trying.locale, given=given)


def _alone(config: Config) -> Config:
    """The person's settings without all that reaches out of the copy or would keep something of it."""
    approvals = config.approvals.model_copy(update={"network": "deny", "mcp": "deny"})
    return config.model_copy(
        update={
            "sandbox": SANDBOX,
            "approvals": approvals,
            "mcp_servers": (),
            "memory": MemorySettings(),
            "playbook": PlaybookSettings(enabled=False, learn="off"),
            "trace": TraceSettings(),
            "storage": StorageSettings(),
            "plugins": PluginSettings(),
        }
    )


def _request(attempt: _Attempt) -> RunRequest:
    return RunRequest(
        text=attempt.case.question,
        limits=_limits(attempt),
        approvals="all",
        attended=False,
        lessons=attempt.lessons,
    )


def _limits(attempt: _Attempt) -> RunLimits:
    limits = attempt.trying.config.limits
    bounds = {
        "max_seconds": limits.max_seconds or LONGEST_RUN,
        "max_rounds": min(limits.max_rounds or MOST_ROUNDS, MOST_ROUNDS),
        "max_cost": attempt.max_cost or limits.max_cost,
    }
    return limits.model_copy(update=bounds)


def _cut_short(attempt: _Attempt, result: RunResult) -> bool:
    """Whether the bound over all trials ended this one: its own limit would not have."""
    own = attempt.trying.config.limits.max_cost
    if result.status != "limit" or result.error is None or attempt.max_cost in (0, own):
        return False
    return result.error.hint.args.get("setting") == "max_cost"


def _told(failure: Failure) -> Text:
    return joined("sentences", [failure.message, failure.hint])
