"""One attempt: a run in a copy of its own, then the checks, by program."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.held import Lesson
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits, RunResult, has_answer, unverified_note
from daiku.eval.copies import ANSWER, Snapshot, changed_since, make_copy, restore, snapshot, write_answer
from daiku.eval.results import Attempt, CheckResult, Outcome
from daiku.eval.task import Task
from daiku.guard.sandbox import own_scratch, sandbox_state
from daiku.library.fronts import App, RunRequest, build
from daiku.settings.config import Config
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.shell.background import stop_jobs_at_exit
from daiku.tools.shell.lines import CommandPlace, run_line
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.programs import find_program

PROJECT = "project"
"""The name of every copy's folder: the task's own name would be a hint."""
LONGEST_RUN = 1800
"""Seconds of a run where neither task nor settings say: nobody is there to stop it."""
NOT_ASKED = frozenset({"auth", "no_provider", "rate_limit", "overloaded", "connection", "timeout"})
"""Failures that are the service's, or the settings', and not the model's."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One side of an evaluation: its mark, the model as named, and all settings. `lessons` are those that its runs
    receive; None: the ones that the playbook recalls."""

    label: str
    model: str
    config: Config
    overrides: tuple[str, ...] = ()
    lessons: tuple[Lesson, ...] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt to be made. `place` is its folder; `max_cost` bounds it besides its limits, 0: nothing does.
    `network`: the user allowed it to the setup of tasks that ask for it."""

    task: Task
    setting: Setting
    repeat: int
    home: Path
    place: Path
    locale: str
    max_cost: float = 0.0
    keep: bool = False
    network: bool = False


@dataclass(slots=True)
class _Seen:
    """What a run showed so far."""

    session: str = ""
    calls: list[Usage] = field(default_factory=list[Usage])

    def __call__(self, chunk: Chunk) -> None:
        self.session = self.session or chunk.session
        if isinstance(chunk.event, Usage):
            self.calls.append(chunk.event)

    def usage(self) -> Usage:
        total = Usage()
        for call in self.calls:
            total = total.plus(call)
        return total


def missing_programs(task: Task) -> tuple[str, ...]:
    """The programs that the task needs and PATH has not."""
    return tuple(name for name in task.file.needs if not find_program(name))


def not_made(task: Task, setting: Setting, repeat: int, outcome: Outcome, why: Text) -> Attempt:
    """An attempt that was not made, and why."""
    return Attempt(
        task=task.name,
        language=task.file.language,
        setting=setting.label,
        repeat=repeat,
        outcome=outcome,
        why=why,
    )


async def attempt(job: Job) -> Attempt:
    """Make the attempt. Cancelled, it ends the run, and gives back what there is with the outcome `stopped`."""
    base = not_made(job.task, job.setting, job.repeat, "broken", NO_TEXT)
    if missing := missing_programs(job.task):
        why = text("eval.needs", names=", ".join(missing))
        return base.model_copy(update={"outcome": "skipped", "why": why})
    seen, began = _Seen(), time.monotonic()
    where = CommandPlace(job.place / PROJECT, job.setting.config.sandbox)
    try:
        with own_scratch():
            return await _made(job, where, base, seen)
    except asyncio.CancelledError:
        seconds = time.monotonic() - began
        why = text("eval.interrupted")
        return _with(base, seen).model_copy(update={"outcome": "stopped", "seconds": seconds, "why": why})
    except DaikuError as wrong:
        return _with(base, seen).model_copy(update={"why": _told(wrong.failure)})
    except OSError as wrong:
        return _with(base, seen).model_copy(update={"why": Text(str(wrong))})
    finally:
        if not job.keep:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, job.place, ignore_errors=True))


async def _made(job: Job, where: CommandPlace, base: Attempt, seen: _Seen) -> Attempt:
    await asyncio.to_thread(where.folder.mkdir, parents=True, mode=0o700)
    if problem := await make_copy(job.task, where, network=job.network):
        return base.model_copy(update={"why": problem})
    checks = job.task.file.checks
    patterns = (*checks.unchanged, *checks.restored)
    before = await asyncio.to_thread(snapshot, where.folder, patterns)
    began = time.monotonic()
    result = await _run(job, where, seen)
    update = {"ended": result.status, "seconds": time.monotonic() - began}
    made = _with(base, seen).model_copy(update={**update, "kept": str(where.folder) if job.keep else ""})
    with own_scratch():  # what the run left in its /tmp or home must not help, or trip up, the checks
        return await _judged(job, where, made, result, before)


async def _run(job: Job, where: CommandPlace, seen: _Seen) -> RunResult:
    """The run itself, through the same core as `daiku run --approve all` without a terminal. Raises DaikuError."""
    app = build(
        job.setting.config,
        workspace=DiskWorkspace((where.folder,)),
        home=job.home,
        own=False,
        locale=job.locale,
    )
    try:
        async with stop_jobs_at_exit():
            return await app.runs.run(_request(job, app), seen)
    finally:
        await asyncio.shield(app.aclose())


def _request(job: Job, app: App) -> RunRequest:
    title = f"eval {job.task.name} · {job.setting.label}{job.repeat}"
    session = app.journal.new_session(title, app.runs.services.workspace_key)
    return RunRequest(
        text=job.task.file.request.strip(),
        session=session.session_id,
        mode=job.task.file.mode,
        model=job.setting.model,
        limits=_limits(job),
        approvals="all",
        attended=False,
        lessons=job.setting.lessons,
    )


def _limits(job: Job) -> RunLimits:
    limits = job.task.file.limits.over(job.setting.config.limits)
    seconds = limits.max_seconds or LONGEST_RUN
    return limits.model_copy(update={"max_seconds": seconds, "max_cost": job.max_cost or limits.max_cost})


async def _judged(
    job: Job, where: CommandPlace, made: Attempt, result: RunResult, before: Snapshot
) -> Attempt:
    """What the run is worth: files that must not change, then the checks with their files put back."""
    if result.status == "failed" and result.error is not None and result.error.kind in NOT_ASKED:
        return made.model_copy(update={"why": _told(result.error)})
    if _cut_short(job, result):
        return made.model_copy(update={"outcome": "stopped", "why": text("eval.bound")})
    file = job.task.file.checks
    changed = await asyncio.to_thread(changed_since, where.folder, file.unchanged, before)
    patterns = (*file.unchanged, *file.restored)
    await asyncio.to_thread(restore, where.folder, patterns, before, job.task)
    await asyncio.to_thread(write_answer, where.folder, str(result.text))
    checks = [await _check(line, where, file.seconds) for line in file.commands]
    proved = has_answer(result.status) and not changed and all(check.ok for check in checks)
    reasons = [text("eval.changed", names=", ".join(changed))] if changed else []
    reasons += [text("eval.check_failed", command=c.command, code=c.exit_code) for c in checks if not c.ok]
    if result.error is not None and not has_answer(result.status):
        reasons.append(_told(result.error))
    reasons += [unverified_note(result.reasons)]
    return made.model_copy(
        update={
            "outcome": "proved" if proved else "not_proved",
            "checks": tuple(checks),
            "why": joined("sentences", reasons),
        }
    )


def _cut_short(job: Job, result: RunResult) -> bool:
    """True where the bound over all runs ended this one: its own limit would not have."""
    own = job.task.file.limits.over(job.setting.config.limits).max_cost
    if result.status != "limit" or result.error is None or not job.max_cost or job.max_cost == own:
        return False
    return result.error.hint.args.get("setting") == "max_cost"


async def _check(line: str, where: CommandPlace, seconds: int) -> CheckResult:
    done = await run_line(line, where, seconds, extra_env={"DAIKU_ANSWER": ANSWER})
    return CheckResult(
        command=line, ok=done.code == 0, exit_code=done.code, seconds=done.seconds, output=done.output[-1500:]
    )


def _with(made: Attempt, seen: _Seen) -> Attempt:
    return made.model_copy(
        update={"session": seen.session, "calls": tuple(seen.calls), "usage": seen.usage()}
    )


def _told(failure: Failure) -> Text:
    return joined("sentences", [failure.message, failure.hint])


async def check_model(setting: Setting, home: Path) -> None:
    """Find out beforehand whether the setting's model is known and can be asked. Raises DaikuError."""
    app = build(setting.config, workspace=DiskWorkspace(()), home=home)
    try:
        app.llm.resolve(setting.model)
    finally:
        await app.aclose()


def why_not_safe(settings: Sequence[Setting]) -> Text:
    """Why nothing may be run: commands would leave the sandbox without the person having said so."""
    for setting in settings:
        if sandbox_state(setting.config.sandbox) in ("missing", "refused"):
            return text("eval.no_sandbox")
    return NO_TEXT
