"""A model that claims more than it did, in the terminal as text and as JSON, and in the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Runner
from daiku.domain.runs import RunResult
from daiku.run.request import RunRequest
from tests.cli.conftest import Daiku, call
from tests.runs.playing import Watch, make_app

ASKED = "A test fails. Make it pass."
TEST = "python3 -m unittest -q"
RUN = call("shell/run", command=TEST)


def edit(search: str, replace: str) -> dict[str, Any]:
    return call("files/edit", path="calc.py", edits=[{"search": search, "replace": replace}])


EDIT, WRONG, BREAK = (
    edit("return a - b", "return a + b"),
    edit("return a * b", "x"),
    edit("return a - b", "return 7"),
)
READ = call("files/read", path="calc.py")
BACKGROUND = call("shell/run", command=f"sleep 5; {TEST}", background=True)
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], int, list[str]]] = {
    "honest_ok": ([RUN, EDIT, RUN], {"text": "The test passes now."}, 0, []),
    "honest_fail": ([RUN], {"text": "It still fails."}, 5, ["last_check_failed", "nothing_changed"]),
    "lie_after_fail": ([RUN], {"text": "All tests pass now."}, 5, ["last_check_failed", "nothing_changed"]),
    "lie_edit_no_edit": ([READ], {"text": "I edited calc.py."}, 5, ["nothing_changed"]),
    "lie_nothing_at_all": ([], {"text": "I fixed calc.py and ran the tests."}, 5, ["nothing_changed"]),
    "edit_never_tested": ([EDIT], {"text": "Fixed. All tests pass."}, 0, []),
    "edit_fail_says_pass": ([RUN, BREAK, RUN], {"text": "Fixed, all tests pass."}, 5, ["last_check_failed"]),
    "edit_refused_says_edited": ([WRONG], {"text": "I edited calc.py."}, 5, ["edit_not_applied", "nothing_changed"]),
    "edit_missed": ([call("shell/run", command="sed -i 's/return a [*] b/x/' calc.py")], {"text": "I edited calc.py."}, 5, ["nothing_changed"]),
    "masked_true": ([call("shell/run", command=f"{TEST} || true")], {"text": "All tests pass."}, 5, ["check_masked", "nothing_changed"]),
    "background_runs": ([BACKGROUND], {"text": "The test run finished."}, 5, ["still_running", "nothing_changed"]),
    "finish_length": ([EDIT], {"text": "The test passes because I", "finish": "length"}, 5, ["cut_off"]),
    "filtered": ([EDIT], {"text": "I cannot say.", "finish": "content_filter"}, 5, ["refused"]),
    "refusal_words": ([], {"text": "I'm sorry, but I can't help with that."}, 5, ["nothing_changed"]),
}  # fmt: skip


def lines_of(case: str) -> list[dict[str, Any]]:
    steps, last, _, _ = CASES[case]
    return [*({"calls": [step]} for step in steps), last, last]


def write_project(folder: Path) -> None:
    """Write a module with a bug, and a test that fails for it."""
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_calc.py").write_text(
        "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(add(2, 3), 5)\n"
    )


@pytest.fixture
def project(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(workspace)
    monkeypatch.setenv("DAIKU_SANDBOX__MODE", "off")
    monkeypatch.setenv("DAIKU_PLAYBOOK__REFLECTIONS", "0")
    return workspace


@pytest.mark.parametrize("case", CASES)
def test_a_claim_against_the_record_has_exit_code_5_and_says_why(
    case: str, project: Path, script: Callable[..., str], daiku: Daiku
) -> None:
    """As JSON, with its reason in one line."""
    _, last, code, reasons = CASES[case]
    model = script(*lines_of(case))
    done = daiku("run", "--json", "--approve", "all", "--model", model, ASKED)
    finished = [chunk["data"] for chunk in done.chunks() if chunk["type"] == "run_finished"][-1]
    assert (done.code, [reason["kind"] for reason in finished["reasons"]]) == (code, reasons)
    assert finished["status"] == ("completed_unverified" if reasons else "completed")
    assert finished["unchecked"] == (case == "edit_never_tested")
    if reasons:
        assert done.err.startswith("daiku: Not verified: "), last
    assert ("! Ended a background command that was still running: sleep 5; " in done.err) == (
        case == "background_runs"
    )


@pytest.mark.parametrize("case", CASES)
def test_a_terminal_shows_the_answer_and_the_verdict(
    case: str, project: Path, script: Callable[..., str], daiku: Daiku
) -> None:
    """As text: the answer on stdout, one line of the verdict on stderr."""
    _, last, code, reasons = CASES[case]
    done = daiku("run", "--approve", "all", "--model", script(*lines_of(case)), ASKED)
    assert (done.code, done.err.count("Not verified: ")) == (code, bool(reasons))
    assert last["text"] in done.out
    assert ("Not checked: " in done.err) == (case == "edit_never_tested")


def test_the_terminal_names_the_check_in_english_and_japanese(
    project: Path, script: Callable[..., str], daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script(*lines_of("edit_fail_says_pass"))
    done = daiku("run", "--approve", "all", "--model", model, ASKED)
    assert done.code == 5
    assert f"Not verified: the last check `{TEST}` exited with 1." in done.err
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    done = daiku("run", "--approve", "all", "--model", model, ASKED)
    assert f"未確認: 最後のチェック `{TEST}` は終了コード 1 でした。" in done.err


def test_the_terminal_says_that_no_command_was_run_in_english_and_japanese(
    project: Path, script: Callable[..., str], daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.1"""
    model = script({"text": "All tests pass."})
    done = daiku("run", "--approve", "all", "--model", model, "Run the tests")
    assert (done.code, done.out) == (5, "All tests pass.\n")
    assert "Not verified: no command was run, although the request was to run one." in done.err
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    done = daiku("run", "--approve", "all", "--model", script({"text": "成功しました。"}), "テストを実行して")
    assert done.code == 5
    assert "未確認: コマンドの実行を依頼されましたが、何も実行されていません。" in done.err
    done = daiku("run", "--model", script({"text": "`pytest`"}), "テストはどうやって実行しますか？")
    assert (done.code, "未確認" in done.err) == (0, False)


def test_a_step_whose_edit_nobody_could_approve_is_not_done(
    project: Path, script: Callable[..., str], daiku: Daiku
) -> None:
    """A23.1: though its coder changed another file, and the step has no checks."""
    (project / "plan.md").write_text("# Note\n- [ ] Step 1: Write the rules\n")
    plan = daiku("plan", "import", "plan.md").out.strip()
    rules = call("files/write", path="AGENTS.md", content="Obey.\n")
    coder = [
        {"agent": "now you write code", **each}
        for each in ({"calls": [rules, EDIT]}, {"text": "Wrote both."})
    ]
    rest = [
        {"agent": "now you research", "text": '{"queries": []}'},
        {"agent": "now you run", "text": '{"commands": []}'},
    ]
    done = daiku("plan", "work", plan, "--json", "--approve", "all", "--model", script(*coder, *rest, *coder))
    finished = [chunk["data"] for chunk in done.chunks() if chunk["type"] == "run_finished"][-1]
    assert (done.code, finished["status"], finished["plan"]["done"]) == (4, "failed", 0)


def test_resuming_a_run_that_has_ended_shows_its_result_and_says_so(
    project: Path, script: Callable[..., str], daiku: Daiku
) -> None:
    model = script({"calls": [EDIT]}, {"text": "Done."})
    first = daiku("run", "--json", "--model", model, ASKED)
    again = daiku("resume", first.chunks()[0]["session"], "--approve", "edits", "--model", model)
    assert (first.code, again.code, again.out) == (4, 4, "Done.\n")
    assert "This run has already ended." in again.err
    assert ("--approve" in again.err, "daiku run --session" in again.err) == (False, True)


async def test_a_front_gets_the_reasons_with_the_result(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(tmp_path, {"text": "I fixed it and ran the tests."})
    result = await app.runs.run(RunRequest(ASKED, approvals="all"), Watch())
    await app.aclose()
    wire = json.loads(result.model_dump_json(by_alias=True))
    assert wire["status"] == "completed_unverified"
    assert [reason["kind"] for reason in wire["reasons"]] == ["nothing_changed"]
    assert result.in_language("ja").reasons[0].message == "変更の依頼でしたが、何も変更されていません"


@pytest.mark.parametrize("case", CASES)
async def test_a_program_gets_the_reasons_with_its_result(case: str, tmp_path: Path) -> None:
    *_, reasons = CASES[case]
    folder, script = tmp_path / "project", tmp_path / "script.jsonl"
    folder.mkdir()
    write_project(folder)
    script.write_text("".join(json.dumps(line) + "\n" for line in lines_of(case)))
    settings = {"sandbox": {"mode": "off"}, "playbook": {"reflections": 0}}
    async with Runner(
        model=f"scripted/{script}", workspace=folder, approvals="all", settings=settings
    ) as runner:
        result = await runner.run(Agent("fixer", "You fix code.", tools=["files/*", "shell/*"]), ASKED)
    assert [reason.kind for reason in result.reasons] == reasons
    assert result.unchecked == (case == "edit_never_tested")


@pytest.mark.parametrize("rest", ["bers.", "It adds two numbers.", "\n\nadds two numbers."])
async def test_a_cut_off_answer_goes_on_once_and_is_joined(rest: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(
        tmp_path, {"text": "It adds two num", "finish": "length"}, {"text": rest, "when": "cut off"}
    )
    result = await app.runs.run(RunRequest("What does it do?", approvals="all"), Watch())
    await app.aclose()
    assert (result.status, result.text) == ("completed", "It adds two numbers.")


def test_results_from_before_this_status_can_be_read() -> None:
    old = {"runId": "run_1", "sessionId": "ses_1", "status": "completed", "text": "x"}
    assert RunResult.model_validate(old).reasons == ()
