"""`daiku eval`: the table, the JSON, the comparison, from a pipe and in Japanese."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import RunStarted
from daiku.domain.playbook import Delta
from daiku.eval.compare import Evaluation
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.commands import eval as command
from daiku.fronts.cli.display.evaluations import result_lines
from daiku.fronts.cli.display.term import terminal
from daiku.playbook.repository import open_playbooks
from daiku.settings.trust import set_trusted
from daiku.trace.stores import open_stores
from tests.cli.conftest import Daiku
from tests.eval.playing import make_task, write
from tests.services.models import Said, serving

DONE = {"text": "Done."}
Script = Callable[..., str]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIKU_SANDBOX__MODE", "off")


@pytest.fixture
def tasks(tmp_path: Path, daiku_home: Path) -> str:
    """Tasks in a trusted folder."""
    make_task(tmp_path / "tasks", "good")
    make_task(tmp_path / "tasks", "odd", more='needs = ["no-such-program-here"]')
    set_trusted(daiku_home, tmp_path / "tasks", trusted=True)
    return str(tmp_path / "tasks")


def test_the_table_has_a_line_a_run_and_the_way_to_its_session(
    daiku: Daiku, script: Script, tasks: str
) -> None:
    done = daiku("eval", tasks, "--model", script(write("number.txt", "2\n"), DONE), "--calls")
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if line.startswith("good"))
    assert "proved" in row
    session = row.split()[-1]
    assert f"daiku sessions show {session}" in done.out
    assert "A: 1 of 1 proved" in done.out
    assert "good A1: 2 calls, prompt tokens " in done.out
    assert "odd A1: Required, but not on PATH: no-such-program-here." in done.out
    assert "[1/2] " in done.err
    assert daiku("sessions", "show", session).out.startswith(session)
    assert daiku("sessions", "replay", session).code == 0


def test_as_json_stdout_is_one_value_that_can_be_read_again(daiku: Daiku, script: Script, tasks: str) -> None:
    done = daiku("eval", tasks, "--json", "--model", script(write("number.txt", "2\n"), DONE))
    found = Evaluation.model_validate_json(done.out)
    assert [a.outcome for a in found.attempts] == ["proved", "skipped"]
    assert set(json.loads(done.out)) >= {"version", "settings", "attempts", "totals"}


def test_two_sides_are_set_beside_one_another(daiku: Daiku, script: Script, tasks: str) -> None:
    model = script(write("number.txt", "2\n"), DONE)
    done = daiku("eval", tasks, "--model", model, "--set", "limits.max_repeats=2")
    assert done.code == 0
    assert "(limits.max_repeats=2)" in done.out
    assert "B beside A (tasks in both: 1): success +0 points" in done.out
    assert "not enough runs to tell" in done.out


def test_an_earlier_result_is_the_other_side(
    daiku: Daiku, script: Script, tasks: str, tmp_path: Path
) -> None:
    before = tmp_path / "before.json"
    before.write_text(daiku("eval", tasks, "--json", "--model", script(DONE)).out, encoding="utf-8")
    model = script(write("number.txt", "2\n"), DONE)
    done = daiku("eval", tasks, "--baseline", str(before), "--model", model)
    assert "A: 0 of 1 proved" in done.out
    assert "B: 1 of 1 proved" in done.out
    assert "success +100 points" in done.out
    before.write_text("{}", encoding="utf-8")
    assert "is no result of daiku eval" in daiku("eval", tasks, "--baseline", str(before)).err


@pytest.fixture
def told(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The ids of a lesson that is active and of a change that waits, in the playbook of the current folder; and a
    lesson of the user's own, which holds everywhere."""
    monkeypatch.chdir(workspace)
    stores = open_stores(daiku_home / "daiku.db", str)
    playbooks = open_playbooks(stores.database, (workspace,))
    assert playbooks.repository is not None
    lesson = Delta(id="", type="add", section="project_conventions", content="Numbers are TWO here.")
    active = playbooks.repository.apply(lesson)
    waiting = playbooks.repository.propose(lesson.model_copy(update={"content": "A number is TWO here."}))
    playbooks.user.apply(lesson.model_copy(update={"content": "Numbers are TWO everywhere."}))
    stores.close()
    assert isinstance(active, Delta)
    return active.bullet_id, waiting.id


def follows_lessons(messages: list[dict[str, Any]]) -> Said:
    """The model writes a 2 if it received a lesson that says so."""
    received = any("TWO" in json.dumps(m["content"]) for m in messages if m["role"] == "user")
    if not received or any(m["role"] == "assistant" for m in messages):
        return Said(pieces=("Done.",))
    return Said(calls=(("shell__run", {"command": "echo 2 > number.txt"}),))


@pytest.mark.parametrize("which", [0, 1])
async def test_a_lesson_is_compared_with_no_lesson(
    daiku: Daiku,
    tasks: str,
    told: tuple[str, str],
    which: int,
    daiku_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """X.12, PROTOCOL 10c: only side B receives the lesson, neither side another one; nothing is learned from either. The
    table names the lesson."""
    async with serving(follows_lessons) as service:
        for name, value in service.environment("openai-chat").items():
            monkeypatch.setenv(name, value)
        done = await asyncio.to_thread(daiku, "eval", tasks, "--with-lesson", told[which], "--json")
    found = Evaluation.model_validate_json(done.out)
    first, second = found.settings
    assert (first.lessons, second.lessons) == ((), (told[which],))
    outcomes = {a.setting: a.outcome for a in found.attempts if a.task == "good"}
    assert outcomes == {"A": "not_proved", "B": "proved"}
    assert found.comparison is not None
    assert (found.comparison.better, found.comparison.worse) == (1, 0)
    stores = open_stores(daiku_home / "daiku.db", str)
    lessons = {
        a.setting: [
            each.text
            for chunk in stores.journal.chunks(a.session)
            if isinstance(chunk.event, RunStarted)
            for each in chunk.event.lessons
        ]
        for a in found.attempts
        if a.session
    }
    assert stores.database.query("SELECT 1 FROM playbook_observations") == []
    stores.close()
    assert lessons == {"A": [], "B": [("Numbers are TWO here.", "A number is TWO here.")[which]]}
    assert f"(with lesson {told[which]})" in "\n".join(result_lines(found, terminal(io.StringIO())))


def test_it_speaks_japanese(
    daiku: Daiku, script: Script, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    done = daiku("eval", tasks, "--model", script(write("number.txt", "2\n"), DONE))
    assert "達成" in done.out
    assert "PATH にありません" in done.out
    assert "proved" not in done.out


def test_the_tasks_are_listed_without_a_run(daiku: Daiku, tasks: str) -> None:
    done = daiku("eval", tasks, "--list", "--only", "o*")
    assert done.out == "odd  text  Two  (needs no-such-program-here)\n"


def test_what_is_wrong_is_told_in_one_line(daiku: Daiku, tasks: str, tmp_path: Path) -> None:
    for words, said in (
        ((tasks, "--set", "limits"), "--set limits is not KEY=VALUE"),
        ((tasks, "--set", "limits.max_round=3"), "did you mean limits.max_rounds"),
        ((tasks, "--baseline", "x", "--compare", "y"), "goes with neither --compare nor --set"),
        ((tasks, "--only", "nothing"), "No task matches nothing"),
        ((str(tmp_path / "none"),), "There are no tasks in"),
        ((tasks, "--with-lesson", "batc-00007"), "There is no lesson 'batc-00007'"),
        (
            (tasks, "--with-lesson", "x", "--compare", "y"),
            "cannot be combined with --baseline, --compare, or",
        ),
        ((tasks, "--with-lesson", "x", "--set", "limits.max_rounds=3"), "cannot be combined with --baseline"),
        ((tasks, "--with-lesson", "x", "--baseline", "y"), "cannot be combined with --baseline"),
    ):
        done = daiku("eval", *words)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        assert said in done.err


def test_without_a_model_nothing_is_begun(daiku: Daiku, tasks: str) -> None:
    done = daiku("eval", tasks)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1), done.err
    assert daiku("eval", tasks, "--model", "opnai/x").code == 2


@pytest.fixture
def foreign(tmp_path: Path, daiku_home: Path) -> Path:
    """Tasks whose setup and check leave a mark outside their copy."""
    mark = tmp_path / "mark"
    make_task(
        tmp_path / "foreign", "t", more=f'setup = ["echo setup >> {mark}"]', checks=f"echo check >> {mark}"
    )
    return mark


def test_tasks_of_others_run_nothing_where_nobody_can_be_asked(
    daiku: Daiku, script: Script, foreign: Path, daiku_home: Path
) -> None:
    """A23.3: neither their setup nor their checks, nor the model."""
    folder = str(foreign.parent / "foreign")
    done = daiku("eval", folder, "--model", script(DONE), "--setup-network")
    assert (done.code, done.out) == (2, "")
    assert "--trust-tasks" in done.err
    assert not foreign.exists()
    assert not list(daiku_home.glob("evals/*"))


@pytest.mark.parametrize("how", ["option", "folder", "folder above"])
def test_tasks_of_others_run_in_a_trusted_folder_or_with_the_option(
    how: str, daiku: Daiku, script: Script, foreign: Path, daiku_home: Path
) -> None:
    folder = foreign.parent / "foreign"
    if how != "option":
        set_trusted(daiku_home, folder if how == "folder" else folder.parent, trusted=True)
    options = ["--trust-tasks"] if how == "option" else []
    assert daiku("eval", str(folder), "--model", script(DONE), *options).code == 0
    assert foreign.read_text() == "setup\ncheck\n"


@pytest.mark.parametrize(("key", "runs"), [("y", True), ("n", False), ("", False), (None, False)])
def test_a_person_is_shown_the_commands_and_asked(
    daiku: Daiku,
    script: Script,
    foreign: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    runs: bool,  # a row of a table
) -> None:
    """A23.3: the end of input is a no."""

    async def read_key() -> str | None:
        return key

    monkeypatch.setattr(keyboard, "read_key", read_key)
    monkeypatch.setattr(command, "person_present", lambda: True)
    done = daiku("eval", str(foreign.parent / "foreign"), "--model", script(DONE))
    assert f"echo setup >> {foreign}" in done.err
    assert f"echo check >> {foreign}" in done.err
    assert foreign.exists() is runs
    assert done.code == (0 if runs else 2)
