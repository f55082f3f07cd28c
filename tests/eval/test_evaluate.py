"""A whole evaluation with a scripted model: what is proved, what is not, what does not count."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from daiku.domain.errors import UsageError
from daiku.eval.attempt import Setting
from daiku.eval.compare import EvalAttempt
from daiku.settings.config import Config
from daiku.trace.journal import Journal
from tests.eval.playing import make_task, run, script, setting, write

DONE = {"text": "Done."}


def outcomes(attempts: tuple[EvalAttempt, ...]) -> dict[str, str]:
    return {a.task: a.outcome for a in attempts}


def test_what_a_run_did_is_proved_by_the_checks_and_not_by_its_words(
    tmp_path: Path, daiku_home: Path
) -> None:
    make_task(tmp_path / "tasks", "good")
    make_task(tmp_path / "tasks", "idle")
    model = script(tmp_path, write("number.txt", "2\n", when="(good)"), DONE)
    found = run(tmp_path / "tasks", daiku_home, setting(model))
    assert outcomes(found.attempts) == {"good": "proved", "idle": "not_proved"}
    good, idle = found.attempts
    assert [check.ok for check in good.checks] == [True]
    assert (good.ended, idle.ended) == ("completed", "completed_unverified")
    assert [check.exit_code for check in idle.checks] == [1]
    assert (len(good.calls), len(idle.calls)) == (2, 1)
    assert good.usage.prompt_tokens == sum(call.prompt_tokens for call in good.calls) > 0
    assert (found.totals[0].proved, found.totals[0].counted, found.totals[0].calls) == (1, 2, 3)


def test_the_session_is_in_the_journal_and_no_copy_is_left(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "good")
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, write("number.txt", "2\n"), DONE)))
    journal = Journal(daiku_home / "daiku.db")
    assert journal.get_session(found.attempts[0].session).title == "eval good · A1"
    assert journal.chunks(found.attempts[0].session)
    journal.close()
    assert list((daiku_home / "evals").iterdir()) == []


def test_a_copy_is_kept_when_it_is_asked_for(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "good")
    model = script(tmp_path, write("number.txt", "2\n"), DONE)
    found = run(tmp_path / "tasks", daiku_home, setting(model), keep=True)
    assert (Path(found.attempts[0].kept) / "number.txt").read_text("utf-8") == "2\n"


CHECKED = """[checks]
commands = ["bash check.sh"]
restored = ["check.sh"]
"""


def test_a_run_that_edits_the_checks_does_not_pass(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "cheat", checks=CHECKED, **{"check.sh": "grep -qx 2 number.txt\n"})
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, write("check.sh", "true\n"), DONE)))
    assert outcomes(found.attempts) == {"cheat": "not_proved"}


def test_check_files_beside_the_task_are_not_seen_by_the_run(tmp_path: Path, daiku_home: Path) -> None:
    place = make_task(tmp_path / "tasks", "hidden", checks="test -f number.txt && bash hidden.sh")
    (place / "checks").mkdir()
    (place / "checks" / "hidden.sh").write_text("grep -qx 2 number.txt\n", encoding="utf-8")
    look = {"calls": [{"tool": "shell/run", "args": {"command": "test -f hidden.sh && echo 2 > number.txt"}}]}
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, look, DONE)))
    assert outcomes(found.attempts) == {"hidden": "not_proved"}


def test_a_file_that_must_not_change_is_named(tmp_path: Path, daiku_home: Path) -> None:
    checks = '[checks]\ncommands = ["grep -qx 2 number.txt"]\nunchanged = ["keep.txt"]\n'
    make_task(tmp_path / "tasks", "keep", checks=checks, **{"keep.txt": "as it is\n"})
    both = {"calls": [*write("number.txt", "2\n")["calls"], *write("keep.txt", "x\n")["calls"]]}
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, both, DONE)))
    assert outcomes(found.attempts) == {"keep": "not_proved"}
    assert "keep.txt" in found.attempts[0].why


def test_what_git_ignores_may_come_beside_files_that_must_not_change(
    tmp_path: Path, daiku_home: Path
) -> None:
    checks = '[checks]\ncommands = ["! test -e keep.log"]\nunchanged = ["keep.*"]\n'
    make_task(
        tmp_path / "tasks", "keep", checks=checks, **{"keep.txt": "as it is\n", ".gitignore": "*.log\n"}
    )
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, write("keep.log", "x\n"), DONE)))
    assert outcomes(found.attempts) == {"keep": "proved"}, found.attempts[0].why


def test_the_last_answer_can_be_checked(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "ask", more='mode = "ask"', checks='grep -q "forty-two" "$DAIKU_ANSWER"')
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, {"text": "It is forty-two."})))
    assert outcomes(found.attempts) == {"ask": "proved"}


def test_a_task_whose_programs_are_missing_is_skipped_and_not_counted(
    tmp_path: Path, daiku_home: Path
) -> None:
    make_task(tmp_path / "tasks", "odd", more='needs = ["no-such-program-here"]')
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, DONE)))
    assert outcomes(found.attempts) == {"odd": "skipped"}
    assert (found.totals[0].counted, found.totals[0].other) == (0, 1)
    assert "no-such-program-here" in found.attempts[0].why


def test_a_setup_that_fails_is_no_failure_of_the_model(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "bad", more='setup = ["echo no luck; exit 7"]')
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, DONE)))
    assert outcomes(found.attempts) == {"bad": "broken"}
    assert "exit code 7: no luck" in found.attempts[0].why


def test_a_service_that_cannot_be_asked_is_no_failure_of_the_model(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "good")
    refused = {"error": {"kind": "auth"}}
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, refused)))
    assert outcomes(found.attempts) == {"good": "broken"}


def test_a_run_that_ends_at_its_limit_is_not_done(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "long", checks="[checks]\ncommands = ['true']\n[limits]\nmax_rounds = 1\n")
    model = script(tmp_path, write("number.txt", "2\n"), write("number.txt", "3\n"), DONE)
    found = run(tmp_path / "tasks", daiku_home, setting(model))
    assert outcomes(found.attempts) == {"long": "not_proved"}
    assert found.attempts[0].ended == "limit"


def test_no_run_is_begun_that_would_likely_pass_the_bound_of_cost(tmp_path: Path, daiku_home: Path) -> None:
    for name in ("a", "b", "c"):
        make_task(tmp_path / "tasks", name)
    model = script(tmp_path, write("number.txt", "2\n", cost=0.4), DONE)
    found = run(tmp_path / "tasks", daiku_home, setting(model), max_cost=1.0)
    assert outcomes(found.attempts) == {"a": "proved", "b": "proved", "c": "not_started"}
    assert found.bound_reached
    assert (found.totals[0].cost, found.totals[0].counted) == (pytest.approx(0.8), 2)


def test_an_interruption_ends_what_runs_and_begins_nothing_more(tmp_path: Path, daiku_home: Path) -> None:
    for name in ("a", "b", "c", "d"):
        make_task(tmp_path / "tasks", name)
    slow = {"text": "one two three four five six", "delay_ms": 60_000}
    model = script(tmp_path, {**slow, "when": "(b)"}, write("number.txt", "2\n"), DONE)

    def stop_after_a(attempt: EvalAttempt, stop: asyncio.Event) -> None:
        if attempt.task == "a":
            stop.set()

    found = run(tmp_path / "tasks", daiku_home, setting(model), jobs=2, tell=stop_after_a)
    assert outcomes(found.attempts) == {"a": "proved", "b": "stopped", "c": "not_started", "d": "not_started"}
    assert found.interrupted
    journal = Journal(daiku_home / "daiku.db")
    assert journal.get_session(found.attempts[1].session).status == "cancelled"
    journal.close()
    assert list((daiku_home / "evals").iterdir()) == []


def test_two_settings_are_compared_by_task(tmp_path: Path, daiku_home: Path) -> None:
    for n in range(3):
        make_task(tmp_path / "tasks", f"t{n}")
    idle = setting(script(tmp_path, DONE, name="idle"))
    able = setting(script(tmp_path, write("number.txt", "2\n"), DONE, name="able"), "B")
    found = run(tmp_path / "tasks", daiku_home, idle, able)
    assert found.comparison is not None
    assert (found.comparison.tasks, found.comparison.better, found.comparison.worse) == (3, 3, 0)
    assert found.comparison.difference == 1
    assert not found.comparison.tells  # three tasks are too few
    calls = next(r for r in found.comparison.ratios if r.what == "calls")
    assert calls.ratio == pytest.approx(2)
    assert calls.differs


def test_what_a_run_left_in_the_background_ends_with_it(tmp_path: Path, daiku_home: Path) -> None:
    make_task(tmp_path / "tasks", "server")
    wait = {"command": "echo $$ > pid; exec sleep 600", "background": True}
    seen = {"command": "until test -s pid; do sleep 0.02; done"}
    calls = [{"calls": [{"tool": "shell/run", "args": args}]} for args in (wait, seen)]
    found = run(tmp_path / "tasks", daiku_home, setting(script(tmp_path, *calls, DONE)), keep=True)
    number = int((Path(found.attempts[0].kept) / "pid").read_text("utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_repository_is_taken_at_its_commit(tmp_path: Path, daiku_home: Path) -> None:
    made = make_task(tmp_path / "other", "origin")
    kept = run(tmp_path / "other", daiku_home, setting(script(tmp_path, DONE)), keep=True).attempts[0].kept
    place = make_task(tmp_path / "tasks", "cloned")
    file = place / "task.toml"
    source = f'[source]\ngit = "{kept}"\ncommit = "main"\n'
    file.write_text(file.read_text("utf-8") + source, encoding="utf-8")
    model = script(tmp_path, write("number.txt", "2\n"), DONE)
    found = run(tmp_path / "tasks", daiku_home, setting(model))
    assert made.is_dir()
    assert outcomes(found.attempts) == {"cloned": "proved"}, found.attempts[0].why
    assert (Path(kept) / "number.txt").read_text("utf-8") == "1\n"


def test_without_the_sandbox_that_the_settings_ask_for_nothing_runs(
    tmp_path: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(tmp_path / "tasks", "good")
    monkeypatch.setattr("daiku.guard.sandbox.bubblewrap", lambda: "")
    with pytest.raises(UsageError, match="no working sandbox"):
        run(tmp_path / "tasks", daiku_home, Setting("A", script(tmp_path, DONE), Config()))
