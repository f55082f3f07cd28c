"""The tasks that come with Daiku: their checks fail before, and hold with the solution that nobody is shown."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from daiku.eval.attempt import find_missing_programs
from daiku.eval.copies import CHECK_FILES, FILES, find_builtin_folder, read_tasks
from tests.eval.playing import run, script, setting

SOLUTIONS = Path(__file__).parent / "solutions"
TASKS = {task.name: task for task in read_tasks(find_builtin_folder())}
IDLE = {"text": "I looked at it and found nothing to do."}
ANSWER = (
    "basket_page shows quoted_price, which is kept in the variable quotes under the key (article, currency). When the "
    "price changes, _price_changed calls quotes.forget(article): the key is a tuple with the currency, so nothing is "
    "forgotten until the 600 seconds are over."
)


def solution(name: str) -> list[dict[str, Any]]:
    """What a model that knows the answer says."""
    if name == "explain-stale-price":
        return [{"text": ANSWER}]
    patch = {"command": f"git apply --whitespace=nowarn '{SOLUTIONS / name}.patch'"}
    done = {"text": "直しました。" if name == "wareki-dates" else "Done."}
    return [{"calls": [{"tool": "shell/run", "args": patch}]}, done]


def test_there_are_twenty_tasks_in_six_languages_and_each_has_a_solution() -> None:
    languages = {task.file.language for task in TASKS.values()}
    assert len(TASKS) >= 20
    assert len(languages - {"ini"}) >= 6
    assert {path.stem for path in SOLUTIONS.iterdir()} | {"explain-stale-price"} == set(TASKS)


def test_every_task_is_a_small_repository_of_some_depth() -> None:
    for task in TASKS.values():
        files = [path for path in (task.folder / FILES).rglob("*") if path.is_file()]
        assert 3 <= len(files) <= 15, task.name
        assert sum(path.stat().st_size for path in task.folder.rglob("*") if path.is_file()) < 30_000, (
            task.name
        )


def test_no_solution_is_in_what_is_shipped() -> None:
    for task in TASKS.values():
        names = {path.name for path in task.folder.iterdir()}
        assert names <= {"task.toml", FILES, CHECK_FILES, "script.jsonl"}, task.name


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("name", sorted(TASKS))
def test_the_checks_fail_before_and_hold_with_the_solution(
    name: str, tmp_path: Path, daiku_home: Path
) -> None:
    if missing := find_missing_programs(TASKS[name]):
        pytest.skip(
            f"{', '.join(missing)} is missing: npm test does not install Go, in which some tasks are written"
        )
    idle = setting(script(tmp_path, IDLE, name="idle"))
    able = setting(script(tmp_path, *solution(name), name="able"), "B")
    found = run(TASKS[name].folder, daiku_home, idle, able)
    shown = json.dumps([a.model_dump(by_alias=True) for a in found.attempts], indent=1, ensure_ascii=False)
    assert [a.outcome for a in found.attempts] == ["not_proved", "proved"], shown


MOST_PROMPT_TOKENS = 10_000
"""Of the standard job, in its five calls together."""


def test_the_standard_job_takes_five_calls_and_few_tokens() -> None:
    task = TASKS["failing-test"]
    # Each prompt names the folder, and the length of pytest's own folders differs from run to run.
    with TemporaryDirectory() as home:
        found = run(task.folder, Path(home), setting(f"scripted/{task.folder / 'script.jsonl'}"))
    (attempt,) = found.attempts
    assert attempt.outcome == "proved", attempt.why
    assert len(attempt.calls) == 5
    assert attempt.usage.prompt_tokens <= MOST_PROMPT_TOKENS, [c.prompt_tokens for c in attempt.calls]
