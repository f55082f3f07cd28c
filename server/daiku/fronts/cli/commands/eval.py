"""`daiku eval`: run a folder of tasks with a model or a script, check, count, and compare."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.held import Lesson
from daiku.eval.attempt import Setting
from daiku.eval.compare import EvalAttempt, Evaluation, compare_evaluations
from daiku.eval.copies import BUILTIN, Task, choose_tasks, find_builtin_folder, is_builtin, read_tasks
from daiku.eval.evaluate import EvaluationPlan, evaluate
from daiku.fronts.cli.app_setup import print_notices, settings_for
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.display.evaluations import (
    call_lines,
    command_lines,
    progress_line,
    result_lines,
    task_lines,
)
from daiku.fronts.cli.display.term import human_stream, person_present, terminal
from daiku.fronts.cli.interrupts import stop_on_interrupt
from daiku.fronts.cli.main import CANCELLED, usage_error, write_json, write_output
from daiku.guard.rules.redact import Redactor
from daiku.playbook.desk import open_desk
from daiku.settings import home, secrets_of
from daiku.settings.config import Config
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import locale_of, say

SCRIPT = "scripted/"
"""Prefix of model names that are scripts."""


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """Command-line options of `daiku eval`."""

    folder: str
    model: str
    compare: str
    overrides: tuple[str, ...]
    with_lesson: str
    baseline: str
    only: tuple[str, ...]
    repeat: int
    jobs: int
    max_cost: float
    keep: bool
    calls: bool
    listed: bool
    as_json: bool
    trust_tasks: bool
    setup_network: bool


@click.command("eval", help=say("help.eval"))
@click.argument("folder", default=BUILTIN)
@click.option("--model", default="", metavar="M", help=say("help.opt.model"))
@click.option("--compare", default="", metavar="M2", help=say("help.eval.compare"))
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=say("help.eval.set"))
@click.option("--with-lesson", default="", metavar="ID", help=say("help.eval.with_lesson"))
@click.option("--baseline", default="", metavar="FILE", help=say("help.eval.baseline"))
@click.option("--only", multiple=True, metavar="PATTERN", help=say("help.eval.only"))
@click.option("--repeat", type=click.IntRange(1, 100), default=1, metavar="N", help=say("help.eval.repeat"))
@click.option("--jobs", type=click.IntRange(0, 64), default=0, metavar="N", help=say("help.eval.jobs"))
@click.option(
    "--max-cost", type=click.FloatRange(min=0), default=0.0, metavar="USD", help=say("help.eval.max_cost")
)
@click.option("--keep", is_flag=True, help=say("help.eval.keep"))
@click.option("--calls", is_flag=True, help=say("help.eval.calls"))
@click.option("--list", "listed", is_flag=True, help=say("help.eval.list"))
@click.option("--json", "as_json", is_flag=True, help=say("help.eval.json"))
@click.option("--trust-tasks", is_flag=True, help=say("help.eval.trust_tasks"))
@click.option("--setup-network", is_flag=True, help=say("help.eval.setup_network"))
def eval_(**given: Any) -> int:
    options = EvalOptions(**given)
    folder = find_builtin_folder() if options.folder == BUILTIN else Path(options.folder)
    if options.baseline and (options.compare or options.overrides):
        raise usage_error(say("error.eval_two_sides"))
    if options.with_lesson and (options.baseline or options.compare or options.overrides):
        raise usage_error(say("error.eval_with_lesson"))
    baseline = _read_baseline(options.baseline)
    tasks = choose_tasks(read_tasks(folder), options.only)
    if options.listed:
        fields = {"language", "summary", "needs"}
        rows = [{"name": task.name, **task.file.model_dump(mode="json", include=fields)} for task in tasks]
        if options.as_json:
            write_json(json.dumps(rows, ensure_ascii=False))
        else:
            write_output("".join(line + "\n" for line in task_lines(tasks)))
        return 0
    if not _are_trusted(options, folder):
        options = _ask_for_consent(options, tasks)
    evaluation = asyncio.run(_evaluate(options, tasks, folder.resolve()))
    evaluation = compare_evaluations(baseline, evaluation) if baseline is not None else evaluation
    if options.as_json:
        write_json(evaluation.model_dump_json(by_alias=True))
    else:
        out = terminal(sys.stdout)
        lines = [*result_lines(evaluation, out), *(call_lines(evaluation) if options.calls else ())]
        write_output("".join(line + "\n" for line in lines))
    return CANCELLED if evaluation.interrupted else 0


def _are_trusted(options: EvalOptions, folder: Path) -> bool:
    """Return True if the commands of the tasks may run without asking."""
    return options.trust_tasks or is_builtin(folder) or is_trusted(home(os.environ), folder)


def _ask_for_consent(options: EvalOptions, tasks: tuple[Task, ...]) -> EvalOptions:
    """Show the commands of the tasks and ask; consent also allows network access for their setup.

    Raises UsageError.
    """
    if not person_present():
        raise usage_error(say("error.eval_untrusted", folder=options.folder))
    people = human_stream()
    for line in (say("eval.consent"), *command_lines(tasks)):
        people.write(line + "\n")
    if not asyncio.run(keyboard.confirm(people, say("eval.run_them"))):
        raise usage_error(say("error.eval_declined"))
    return replace(options, setup_network=True)


def _read_baseline(name: str) -> Evaluation | None:
    """Read the evaluation that --json wrote to a file. Raises UsageError."""
    if not name:
        return None
    try:
        return Evaluation.model_validate_json(Path(name).read_bytes())
    except (OSError, ValidationError):
        raise usage_error(say("error.eval_baseline", file=name)) from None


async def _evaluate(options: EvalOptions, tasks: tuple[Task, ...], folder: Path) -> Evaluation:
    settings, state = _settings(options, folder)
    evaluation_plan = EvaluationPlan(
        tasks=tasks,
        settings=settings,
        home=state,
        repeat=options.repeat,
        jobs=options.jobs or max(1, (os.cpu_count() or 2) // 2),
        max_cost=options.max_cost,
        keep=options.keep,
        locale=locale_of(os.environ),
        network=options.setup_network,
    )
    people, stopped = human_stream(), asyncio.Event()

    def print_progress(attempt: EvalAttempt, number: int, count: int) -> None:
        people.write(progress_line(attempt, number, count, people) + "\n")

    restore = stop_on_interrupt(stopped)
    try:
        return await evaluate(evaluation_plan, print_progress, stopped)
    finally:
        restore()


def _settings(options: EvalOptions, folder: Path) -> tuple[tuple[Setting, ...], Path]:
    """Return the settings to compare: those of files and command line, and the second set, if any."""
    loaded, state = settings_for(Path.cwd(), asks_model=True)
    print_notices(loaded)
    first = Setting("A", _model(options.model or loaded.config.llm.model, folder), loaded.config)
    if options.with_lesson:
        lesson = _find_lesson(options.with_lesson, first.config, state)
        without_lesson = replace(first, config=_without_playbook(first.config), lessons=())
        return (without_lesson, replace(without_lesson, label="B", lessons=(lesson,))), state
    if not (options.compare or options.overrides):
        return (first,), state
    second, _ = settings_for(Path.cwd(), _overrides(options.overrides), asks_model=True)
    model = _model(options.compare, folder) or (
        first.model
        if options.model or not second.config.llm.model
        else _model(second.config.llm.model, folder)
    )
    return (first, Setting("B", model, second.config, options.overrides)), state


def _find_lesson(name: str, config: Config, state: Path) -> Lesson:
    """Return the lesson with this id, or the pending lesson with this id. Raises UsageError."""
    redact = Redactor(secrets_of(config, os.environ))
    with open_desk(config, state, Path.cwd(), redact, locale_of(os.environ)) as desk:
        pending = {delta.id: delta.content for delta in desk.deltas(None, ("proposed",)) if delta.content}
        content = pending.get(name) or desk.show(name).bullet.content
    return Lesson(id=name, version=1, text=content)


def _without_playbook(config: Config) -> Config:
    """Return settings for runs that receive no other lessons and learn nothing."""
    playbook = config.playbook.model_copy(update={"enabled": False, "learn": "off"})
    return config.model_copy(update={"playbook": playbook})


def _model(name: str, folder: Path) -> str:
    """Return the model's name. A script is resolved against the working directory and the task folder."""
    if not name.startswith(SCRIPT):
        return name
    path = Path(name.removeprefix(SCRIPT)).expanduser()
    script = next((p for p in (path, folder / path) if p.is_file()), None)
    return f"{SCRIPT}{script.resolve()}" if script else name


def _overrides(pairs: tuple[str, ...]) -> JsonObject:
    """Parse settings from `KEY=VALUE` pairs; a value is TOML, or else text. Raises UsageError."""
    merged: JsonObject = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise usage_error(say("error.eval_set", pair=pair))
        table_values = merged
        *tables, name = key.strip().split(".")
        for table in tables:
            subtable = table_values.setdefault(table, {})
            if not isinstance(subtable, dict):
                raise usage_error(say("error.eval_set", pair=pair))
            table_values = subtable
        try:
            table_values[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table_values[name] = value
    return merged
