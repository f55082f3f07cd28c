"""Requests to run tests or a command: which are told from questions, reports, and other work."""

from __future__ import annotations

from pathlib import Path

from daiku.core.calls.command_requests import asks_for_run
from tests.cases import for_each
from tests.timing import cpu_seconds

RUNS = (
    "Run the tests", "run the tests.", "Run tests", "Please run the tests again.", "Can you run the tests?", "Could you please run the test suite?",
    "Run all the unit tests and tell me which ones fail.", "Run the full test suite.", "Re-run the failing tests.", "Execute the benchmark twice.",
    "Run `pytest -q` and show me the output.", "Run pytest", "run npm test", "Now run `make check`, please.", "Run tests/run.sh", "Execute the script.",
    "Fix add() and run the tests.", "Fix the bug, then run the tests.", "Rename add. Then run the test cases.", "Write fizz.py and run it.",
    "Read calc.py, fix it, and re-run the tests", "Make sure the tests pass.", "Verify that all tests still pass.", "I want you to run the tests.",
    "Let's run the integration tests", "Go ahead and run the migrations.", "- Fix calc.py\n- Run the tests", "Run the tests when you're done.",
    "Could you fix calc.py and run the tests?", "Run the tests that cover add().", "Run it again.",
    "テストを実行して", "テストを実行してください。", "全テストを走らせて", "テストを再実行してみてください", "ユニットテストを回して", "pytest を実行して",
    "`npm test` を実行してください", "テストを実行して、結果を教えてください。", "不具合を直してから、テストを実行して。", "テストを実行してもらえますか？", "テストの実行をお願いします。",
)  # fmt: skip
OTHER = (
    "How do I run the tests?", "how do i run the tests", "Why do the tests fail?", "Do the tests pass?", "Did you run the tests?", "Should I run the tests?",
    "Which command runs the tests?", "Can you tell me how to run the tests?", "Can you run tests in parallel with pytest?", "What happens when I run the tests?",
    "Explain how to build and run the tests.", "Show me the command to run the tests.", "Tell me how to run the tests.", "I ran the tests and they fail.",
    "When I run the tests, add() fails.", "If you run the tests, you see the error.", "Don't run the tests.", "Run the tests. No, wait: don't run them yet.", "Fix it, but do not run the tests.",
    "Fix add() without running the tests.", "Run the tests only if you change something.", "From now on, run the tests after each change.",
    "Always run the tests before you commit.", "Add a Makefile target to lint and run the tests.", "Write a script that can build and run the tests.",
    "Make the test run faster.", "Run `npm run gen` after a change of api/.", "Run the tests before each commit.", "Make the tests pass.", "A test fails. Make it pass.", "Add a test for add().", "Test coverage is low.", "The tests run for an hour.",
    "Steps to reproduce:\n1. Run the script\n2. See the error", "Run through the code and explain it.", "Run it by me first.", "Run a search for TODO.",
    "Run `git status`", "Run `ls -la`", "Review the tests.", "I want to run the tests. What do I need?", "Please document the steps to install and run the tests.",
    "Add a button: run the tests", "Write a test run report.", "The CI could not run the tests.", "Rename run_tests() to run.",
    "テストはどうやって実行しますか？", "テストを実行する方法を教えて", "なぜテストが失敗しますか", "テストを実行すると失敗します", "テストを実行しても失敗します", "テストは通りますか？",
    "テストを実行しています", "テストを実行しないで直して", "テストを実行して失敗する理由を教えて", "テストを実行して結果が変わる理由を教えて", "テストを追加して", "テストが通るようにして", "テストを実行するスクリプトを書いて",
    "再現手順: スクリプトを実行して", "テストを実行しましたか？",
)  # fmt: skip
_FILE = Path(__file__).with_name("requests.txt")


@for_each("request_", RUNS)
def test_an_instruction_to_run_something_is_found(request_: str) -> None:
    """A23.1"""
    assert asks_for_run(request_)


@for_each("request_", OTHER)
def test_a_question_about_a_run_is_no_instruction(request_: str) -> None:
    """A23.1"""
    assert not asks_for_run(request_)


def test_of_the_labeled_requests_only_those_that_say_so_ask_for_a_run() -> None:
    """A23.1"""
    lines = _FILE.read_text("utf-8").splitlines()
    found = [
        line[2:] for line in lines if line[:2] in ("+ ", "- ") and asks_for_run(line[2:].replace("\\n", "\n"))
    ]
    assert found
    assert all(line.lower().startswith(("run ", "execute ", "テストを")) for line in found), found


@for_each(
    "piece",
    [
        "テストを実行して",
        "run the tests and ",
        "please ",
        "to run it, and run the ",
        "npm",
        "  x\n",
        "`",
        "run all ",
    ],
)
def test_a_long_request_to_run_is_judged_in_linear_time(piece: str) -> None:
    """A request may hold a pasted log of megabytes."""
    request = piece * 50_000
    assert cpu_seconds(lambda: asks_for_run(request)) < 3
