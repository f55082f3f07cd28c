"""A task's file: what it may say, and what is told of what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.errors import UsageError
from daiku.domain.runs import RunLimits
from daiku.eval.copies import TaskLimits, choose_tasks, parse_task, read_tasks
from tests.cases import for_each
from tests.eval.playing import make_task

GOOD = 'summary = "s"\nrequest = "r"\nlanguage = "go"\n[checks]\ncommands = ["true"]\n'


def told(written: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_task(written, "task.toml")
    return str(caught.value.failure.message)


def test_a_task_needs_no_more_than_what_it_is_about() -> None:
    task = parse_task(GOOD, "task.toml")
    assert (task.mode, task.needs, task.source, task.limits) == ("act", (), None, TaskLimits())


@for_each(
    ("line", "near"),
    [
        ("sumary = 's'", "Did you mean summary?"),
        ("[limits]\nmax_costs = 1", "Did you mean max_cost?"),
        ("[source]\ngti = 'x'\ncommit = 'y'", "Did you mean git?"),
        ("zzz = 1", "unknown key zzz."),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(line: str, near: str) -> None:
    head, _, checks = GOOD.partition("[checks]")
    said = told(f"{head}{line}\n[checks]{checks}")
    assert near in said
    assert said.startswith("task.toml: ")


def test_everything_wrong_is_told_at_once() -> None:
    said = told('request = "r"\nlanguage = "go"\nmode = "fast"\n[checks]\ncommands = []\n')
    for part in ("summary is missing", "invalid mode", "invalid checks.commands"):
        assert part in said


def test_what_is_no_toml_is_said_to_be_none() -> None:
    assert "is not valid TOML" in told("summary = ")


def test_limits_of_a_task_go_before_those_of_the_settings() -> None:
    limits = TaskLimits(max_rounds=5).over(RunLimits(max_rounds=250, max_cost=2.0))
    assert (limits.max_rounds, limits.max_cost) == (5, 2.0)


def test_a_folder_of_tasks_is_read_in_order_and_one_task_alone(tmp_path: Path) -> None:
    make_task(tmp_path, "b")
    alone = make_task(tmp_path, "a")
    assert [t.name for t in read_tasks(tmp_path)] == ["a", "b"]
    assert [t.name for t in read_tasks(alone)] == ["a"]


def test_a_folder_without_tasks_and_a_task_without_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tasks in"):
        read_tasks(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "task.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError, match="there is no files folder next to it"):
        read_tasks(tmp_path)


def test_tasks_are_chosen_by_name_or_language(tmp_path: Path) -> None:
    for name in ("fix-one", "fix-two", "add"):
        make_task(tmp_path, name)
    tasks = read_tasks(tmp_path)
    assert [t.name for t in choose_tasks(tasks, ["fix-*"])] == ["fix-one", "fix-two"]
    assert len(choose_tasks(tasks, ["text"])) == 3
    with pytest.raises(UsageError, match="No task matches rust"):
        choose_tasks(tasks, ["rust"])
