"""The playbook at a real terminal, from a failure to a lesson that rests again: each step as a person takes it, also in Japanese."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import call
from tests.cli.test_terminal import Open, at_terminal, plain

__all__ = ["at_terminal"]
pytestmark = pytest.mark.slow
RULE = "Always name new files in snake_case."
JAPANESE = {"LC_ALL": "ja_JP.UTF-8"}


def says(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "calls": list(calls)}


@pytest.mark.slow(seconds=15)
def test_from_a_failure_to_a_lesson_that_is_used_and_rests_when_its_work_is_taken_back(
    at_terminal: Open, workspace: Path
) -> None:
    """Issue 12, point 8: fail, correct, propose, accept, the next session right and cited, undo, demoted; by key."""
    (workspace / "Makefile").write_text("check:\n\t@echo 4 passed\n", "utf-8")

    def daiku(*argv: str, lines: tuple[dict[str, Any], ...] = (), **environ: str) -> str:
        with at_terminal(*argv, lines=list(lines), **environ) as screen:
            assert screen.end() == 0, screen.text
            return plain(screen.text)

    def listed() -> dict[str, Any]:
        found = json.loads(daiku("playbook", "list", "--json"))
        return {each["content"]: each for each in found}

    def run(asked: str, *lines: dict[str, Any], **environ: str) -> str:
        return daiku("run", "--approve", "all", *asked.split("|"), lines=lines, **environ)

    # It fails and corrects itself; the person corrects it too; both wait.
    wrong, right = (call("shell/run", command=f"make {target}") for target in ("test", "check"))
    replies = (says("", wrong), says("", right), says("They pass."))
    told = run("run the tests", *replies)
    assert "Waits for your review: Run the tests by `make check`" in " ".join(told.split())
    again = (*replies, says("Understood."))  # a script goes on where its session stands
    told = run("--continue|No, always name new files in snake_case.", *again, **JAPANESE)
    assert "確認待ちの教訓" in told
    assert listed() == {}

    # Both are accepted by one key each.
    with at_terminal("playbook", "review", lines=[], **JAPANESE) as screen:
        for _ in range(2):
            screen.until("[q] 終了")
            screen.type("y")
        assert screen.end() == 0
    bullets = listed()
    assert set(bullets) == {RULE, "Run the tests by `make check`; `make test` fails here."}
    name = bullets[RULE]["id"]

    # The next session is told them, is right at once, and cites one.
    change = call("files/write", path="price_list.py", content="PRICES = {}\n")
    told = run("add the list of prices", says(f"By [{name}].", change), says(f"Done [{name}]."))
    assert "used 1" in told
    assert (workspace / "price_list.py").is_file()
    assert (listed()[RULE]["helpful"], listed()[RULE]["harmful"]) == (1, 0)

    # Its work is taken back: that speaks against the lesson, which rests; the one after that is not told it.
    session = json.loads(daiku("sessions", "list", "--json"))[0]["sessionId"]
    daiku("sessions", "undo", session)
    assert not (workspace / "price_list.py").exists()
    assert (listed()[RULE]["helpful"], listed()[RULE]["harmful"]) == (0, 1)
    assert "変更が元に戻された" in daiku("playbook", "show", name, lines=(), **JAPANESE)
    change = call("files/write", path="customer_list.py", content="CUSTOMERS = {}\n")
    lines = run("--json|add the list of customers", says("", change), says("Done.")).splitlines()
    (started,) = [each for each in map(json.loads, lines) if each["type"] == "run_started"]
    assert name not in [each["id"] for each in started["data"]["lessons"]]
    assert [each["id"] for each in started["data"]["lessons"]] == ["batc-00001"]
