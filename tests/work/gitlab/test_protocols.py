"""An item from its label to its request, by models with tools of their own and by models that write JSON."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from daiku.settings.config import WorkSettings
from tests.work.gitlab.working import BRANCH, Line, shop_of, written
from tests.work.gitlabfake.fixture import GitLabYard

pytestmark = pytest.mark.slow
ARGS = {"path": "one.py", "content": "1\n"}
COMMAND: list[Line] = [
    {"text": json.dumps({"command": {"comment": "A file.", "tool": "files/write", "args": ARGS}})},
    {"text": json.dumps({"done": True, "comment": "All is done."})},
]
NATIVE: list[Line] = [written("one.py", "1\n"), {"text": "All is done."}]


@pytest.mark.parametrize(("protocol", "lines"), [("native", NATIVE), ("command", COMMAND)])
async def test_an_item_is_worked_in_both_protocols(
    gitlab_forge: GitLabYard, tmp_path: Path, protocol: str, lines: list[Line]
) -> None:
    """R2.30, R2.31, R2.32, R2.50, R2.51, R2.55, R2.57, R2.58: command by command until it is done; its words are posted."""
    async with shop_of(gitlab_forge, tmp_path, protocol=protocol) as shop:
        shop.script(*lines)
        assert await shop.once() == ["done"]
        assert shop.project.git("show", f"{BRANCH}:one.py") == "1"
        assert "All is done." in shop.ours()[-1]
        assert shop.request.row["title"] == "Draft: Mend add"
        assert shop.issue.row["labels"] == ["coding agent done"]


@pytest.mark.parametrize(("unreadable", "ends"), [(5, "done"), (6, "failed")])
async def test_a_reply_without_json_is_asked_for_again_five_times_and_then_the_item_has_failed(
    gitlab_forge: GitLabYard, tmp_path: Path, caplog: pytest.LogCaptureFixture, unreadable: int, ends: str
) -> None:
    """R2.53, R2.54, R2.75, C2.3, C2.6: six requests; then the error as a comment, and the label that says so alone."""
    caplog.set_level(logging.INFO, "daiku.models")
    async with shop_of(gitlab_forge, tmp_path, protocol="command") as shop:
        shop.script(*[{"text": f"Hm, {n}."} for n in range(unreadable)], *COMMAND)
        assert await shop.once() == [ends]
        assert shop.issue.row["labels"] == [f"coding agent {ends}"]
        assert caplog.text.count("of 6 of") >= 5
        if ends == "failed":
            assert caplog.text.count("was not read: there is no JSON") == 6
            (said,) = [body for body in shop.ours() if "The work failed" in body]
            assert "Reason:" in said
            assert "6" in said
            assert not shop.project.requests


async def test_a_grave_error_is_a_comment_and_the_label_says_so(
    gitlab_forge: GitLabYard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R2.75, R2.76, C2.3, S2P.16: an item never stays as one that is worked."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script({"error": {"kind": "bad_request", "message": "The key is wrong."}})
        assert await shop.once() == ["failed"]
        assert shop.issue.row["labels"] == ["coding agent failed"]
        assert sum("The work failed" in body and "The key is wrong." in body for body in shop.ours()) == 1
        assert (
            sum("gitlab:group/name#1: " in line and "The key is wrong." in line for line in caplog.messages)
            == 1
        )
        assert await shop.once() == []


async def test_how_often_is_asked_again_is_a_setting(gitlab_forge: GitLabYard, tmp_path: Path) -> None:
    async with shop_of(gitlab_forge, tmp_path, protocol="command", parse_retries=0) as shop:
        shop.script({"text": "Hm."}, *COMMAND)
        assert await shop.once() == ["failed"]


async def test_at_the_last_round_the_item_is_told_as_not_finished(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """R2.33, C2.4, C2.5: never as done; the request holds what there is."""
    async with shop_of(gitlab_forge, tmp_path, max_rounds=2) as shop:
        shop.script(written("one.py", "1\n"), written("two.py", "2\n"), written("three.py", "3\n"))
        assert await shop.once() == ["done"]
        assert "not finished" in shop.ours()[-1]
        assert "The work is done" not in shop.ours()[-1]
        assert "No files were changed." not in shop.ours()[-1]
        assert shop.request.row["title"].startswith("Draft:")
        assert shop.project.git("show", f"{BRANCH}:two.py") == "2"
        assert not shop.items.in_review()


@pytest.mark.parametrize(
    ("names", "ends"), [(("x.py", "x.py", "x.py"), "limit"), (("x.py", "y.py", "z.py"), "unverified")]
)
async def test_three_equal_errors_of_a_tool_end_the_work_and_three_others_do_not(
    gitlab_forge: GitLabYard, tmp_path: Path, names: tuple[str, ...], ends: str
) -> None:
    """B2.3, S2P.15: the model is told of each; the same one three times in a row is the end."""
    calls = [{"tool": "files/read", "args": {"path": name}} for name in names]
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(*[{"text": "Look.", "calls": [call]} for call in calls], {"text": "So it is."})
        assert await shop.once() == ["failed"], "neither changed anything"
        said = shop.ours()[-1]
        assert ("not finished" in said, "nothing verifies that it is done" in said) == (
            ends == "limit",
            ends == "unverified",
        )
        assert "So it is." in said
        assert "No files were changed." in said


async def test_the_last_word_of_a_model_that_writes_json_may_be_words(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """C2.4: what is left is told where the work ends at a limit."""
    async with shop_of(gitlab_forge, tmp_path, protocol="command", max_rounds=5) as shop:
        calls = [
            {"comment": f"{n}", "tool": "files/write", "args": {**ARGS, "path": f"{n}.py"}} for n in range(4)
        ]
        shop.script(*[{"text": json.dumps({"command": call})} for call in calls], {"text": "Pears are left."})
        assert await shop.once() == ["done"]
        assert "not finished" in shop.ours()[-1]
        assert "Pears are left." in shop.ours()[-1]


def test_the_rounds_of_an_item_are_a_thousand_unless_said() -> None:
    """C2.5, C2.6: and replies without JSON are asked for again five times."""
    assert WorkSettings().max_rounds == 1000
    assert WorkSettings().parse_retries == 5
