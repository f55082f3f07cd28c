"""One attempt at a task: a run in a copy of its repository, then its checks."""

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
from daiku.eval.compare import CheckResult, EvalAttempt, Outcome
from daiku.eval.copies import (
    ANSWER,
    Snapshot,
    Task,
    find_changed,
    make_copy,
    restore,
    take_snapshot,
    write_answer,
)
from daiku.guard.sandbox import own_scratch, sandbox_state
from daiku.library.fronts import App, RunRequest, build
from daiku.settings.config import Config
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.shell.background import stop_jobs_at_exit
from daiku.tools.shell.environment import CommandPlace, run_line
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.programs import find_program

PROJECT = "project"
"""Folder name of every copy: the task's name would be a hint."""
LONGEST_RUN = 1800
"""Default time limit of a run in seconds."""
NOT_ASKED = frozenset({"auth", "no_provider", "rate_limit", "overloaded", "connection", "timeout"})
"""Failures of the service or the settings, not of the model."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One side of an evaluation: its label, model, and settings.

    `lessons` are those that its runs receive; None: the ones that the playbook recalls.
    """

    label: str
    model: str
    config: Config
    overrides: tuple[str, ...] = ()
    lessons: tuple[Lesson, ...] | None = None


@dataclass(frozen=True, slots=True)
class AttemptJob:
    """An attempt to run in the folder `place`.

    `max_cost`: cost limit in USD besides the run's limits, 0 for none. `network`: the user allowed network
    access to the setup of tasks.
    """

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
class _RunRecord:
    """Session and model calls of a run in progress."""

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


def find_missing_programs(task: Task) -> tuple[str, ...]:
    """Return the programs that the task needs and that are not on PATH."""
    return tuple(name for name in task.file.needs if not find_program(name))


def build_unstarted(task: Task, setting: Setting, repeat: int, outcome: Outcome, why: Text) -> EvalAttempt:
    """Return the result of an attempt that did not run, with the reason."""
    return EvalAttempt(
        task=task.name,
        language=task.file.language,
        setting=setting.label,
        repeat=repeat,
        outcome=outcome,
        why=why,
    )


async def run_attempt(job: AttemptJob) -> EvalAttempt:
    """Run an attempt. Cancellation ends the run and returns the partial result with the outcome `stopped`."""
    base = build_unstarted(job.task, job.setting, job.repeat, "broken", NO_TEXT)
    if missing := find_missing_programs(job.task):
        why = text("eval.needs", names=", ".join(missing))
        return base.model_copy(update={"outcome": "skipped", "why": why})
    record, start = _RunRecord(), time.monotonic()
    where = CommandPlace(job.place / PROJECT, job.setting.config.sandbox)
    try:
        with own_scratch():
            return await _run_in_copy(job, where, base, record)
    except asyncio.CancelledError:
        seconds = time.monotonic() - start
        why = text("eval.interrupted")
        return _with_record(base, record).model_copy(
            update={"outcome": "stopped", "seconds": seconds, "why": why}
        )
    except DaikuError as wrong:
        return _with_record(base, record).model_copy(update={"why": _format_failure(wrong.failure)})
    except OSError as wrong:
        return _with_record(base, record).model_copy(update={"why": Text(str(wrong))})
    finally:
        if not job.keep:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, job.place, ignore_errors=True))


async def _run_in_copy(
    job: AttemptJob, where: CommandPlace, base: EvalAttempt, record: _RunRecord
) -> EvalAttempt:
    """Create the copy, run the task, and check the result."""
    await asyncio.to_thread(where.folder.mkdir, parents=True, mode=0o700)
    if problem := await make_copy(job.task, where, network=job.network):
        return base.model_copy(update={"why": problem})
    checks = job.task.file.checks
    patterns = (*checks.unchanged, *checks.restored)
    before = await asyncio.to_thread(take_snapshot, where.folder, patterns)
    start = time.monotonic()
    result = await _run(job, where, record)
    update = {"ended": result.status, "seconds": time.monotonic() - start}
    partial = _with_record(base, record).model_copy(
        update={**update, "kept": str(where.folder) if job.keep else ""}
    )
    with own_scratch():  # the checks must not depend on what the run left in /tmp or home
        return await _check_result(job, where, partial, result, before)


async def _run(job: AttemptJob, where: CommandPlace, record: _RunRecord) -> RunResult:
    """Run the task like `daiku run --approve all` without a terminal. Raises DaikuError."""
    app = build(
        job.setting.config,
        workspace=DiskWorkspace((where.folder,)),
        home=job.home,
        own=False,
        locale=job.locale,
    )
    try:
        async with stop_jobs_at_exit():
            return await app.runs.run(_build_request(job, app), record)
    finally:
        await asyncio.shield(app.aclose())


def _build_request(job: AttemptJob, app: App) -> RunRequest:
    title = f"eval {job.task.name} · {job.setting.label}{job.repeat}"
    session = app.journal.new_session(title, app.runs.services.workspace_key)
    return RunRequest(
        text=job.task.file.request.strip(),
        session=session.session_id,
        mode=job.task.file.mode,
        model=job.setting.model,
        limits=_resolve_limits(job),
        approvals="all",
        attended=False,
        lessons=job.setting.lessons,
    )


def _resolve_limits(job: AttemptJob) -> RunLimits:
    limits = job.task.file.limits.over(job.setting.config.limits)
    seconds = limits.max_seconds or LONGEST_RUN
    return limits.model_copy(update={"max_seconds": seconds, "max_cost": job.max_cost or limits.max_cost})


async def _check_result(
    job: AttemptJob, where: CommandPlace, partial: EvalAttempt, result: RunResult, before: Snapshot
) -> EvalAttempt:
    """Check the result: unchanged files first, then the commands with restored files."""
    if result.status == "failed" and result.error is not None and result.error.kind in NOT_ASKED:
        return partial.model_copy(update={"why": _format_failure(result.error)})
    if _has_hit_shared_limit(job, result):
        return partial.model_copy(update={"outcome": "stopped", "why": text("eval.bound")})
    file = job.task.file.checks
    changed = await asyncio.to_thread(find_changed, where.folder, file.unchanged, before)
    patterns = (*file.unchanged, *file.restored)
    await asyncio.to_thread(restore, where.folder, patterns, before, job.task)
    await asyncio.to_thread(write_answer, where.folder, str(result.text))
    checks = [await _run_check(line, where, file.seconds) for line in file.commands]
    proved = has_answer(result.status) and not changed and all(check.ok for check in checks)
    reasons = [text("eval.changed", names=", ".join(changed))] if changed else []
    reasons += [text("eval.check_failed", command=c.command, code=c.exit_code) for c in checks if not c.ok]
    if result.error is not None and not has_answer(result.status):
        reasons.append(_format_failure(result.error))
    reasons += [unverified_note(result.reasons)]
    return partial.model_copy(
        update={
            "outcome": "proved" if proved else "not_proved",
            "checks": tuple(checks),
            "why": joined("sentences", reasons),
        }
    )


def _has_hit_shared_limit(job: AttemptJob, result: RunResult) -> bool:
    """Return True if the cost limit of the evaluation, not its own, ended the run."""
    own = job.task.file.limits.over(job.setting.config.limits).max_cost
    if result.status != "limit" or result.error is None or not job.max_cost or job.max_cost == own:
        return False
    return result.error.hint.args.get("setting") == "max_cost"


async def _run_check(line: str, where: CommandPlace, seconds: int) -> CheckResult:
    result = await run_line(line, where, seconds, extra_env={"DAIKU_ANSWER": ANSWER})
    return CheckResult(
        command=line,
        ok=result.code == 0,
        exit_code=result.code,
        seconds=result.seconds,
        output=result.output[-1500:],
    )


def _with_record(partial: EvalAttempt, record: _RunRecord) -> EvalAttempt:
    return partial.model_copy(
        update={"session": record.session, "calls": tuple(record.calls), "usage": record.usage()}
    )


def _format_failure(failure: Failure) -> Text:
    return joined("sentences", [failure.message, failure.hint])


async def check_model(setting: Setting, home: Path) -> None:
    """Check that the setting's model is known and available. Raises DaikuError."""
    app = build(setting.config, workspace=DiskWorkspace(()), home=home)
    try:
        app.llm.resolve(setting.model)
    finally:
        await app.aclose()


def find_sandbox_problem(settings: Sequence[Setting]) -> Text:
    """Return why nothing may run: commands would run without a sandbox. Empty if there is one."""
    for setting in settings:
        if sandbox_state(setting.config.sandbox) in ("missing", "refused"):
            return text("eval.no_sandbox")
    return NO_TEXT
