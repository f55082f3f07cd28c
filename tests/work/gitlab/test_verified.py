"""What an item's run says is done is looked at once more, before the request is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.gitlab.working import BRANCH, Line, Shop, shop_of, written
from tests.work.gitlabfake.fixture import GitLabYard

pytestmark = pytest.mark.slow
STUB = "def add(a, b):\n    raise NotImplementedError\n"
WHOLE = "def add(a, b):\n    return a + b\n"


def edited(name: str, before: str, after: str) -> Line:
    args = {"path": name, "edits": [{"search": before, "replace": after}]}
    return {"text": f"I edit {name}.", "calls": [{"tool": "files/edit", "args": args}]}


def runs(shop: Shop) -> list[str]:
    """How the runs of the item were asked, in their first words."""
    return [prompt[:20] for prompt in shop.prompts()]


async def test_what_is_unfinished_is_put_right_before_the_request_is_opened(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """S2P.8, S2P.10, S2P.12: in a second run of the session, shown by the same comment."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(
            written("add.py", STUB),
            {"text": "Done."},
            edited("add.py", "raise NotImplementedError", "return a + b"),
            {"text": "Now it is whole."},
        )
        assert await shop.once() == ["done"]
        assert shop.project.git("show", f"{BRANCH}:add.py") == WHOLE.strip()
        assert runs(shop) == ["You work on gitlab:g", "You said that the wo"]
        assert [body.startswith("<!-- daiku:progress -->") for body in shop.ours()] == [True, False]
        assert "Now it is whole." in shop.ours()[-1]
        assert "The work is done" in shop.ours()[-1]
        assert "NotImplementedError" not in shop.request.row["description"]


async def test_what_stays_unfinished_is_told_and_listed_and_the_request_stays_a_draft(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """S2P.10, S2P.14, S2P.18: two rounds, then the work ends as not finished."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(written("add.py", STUB), *({"text": f"It is done, {n}."} for n in range(9)))
        assert await shop.once() == ["done"]
        assert len(runs(shop)) == 3
        assert "not finished" in shop.ours()[-1]
        assert "NotImplementedError" in shop.ours()[-1]
        assert "NotImplementedError" in shop.request.row["description"]
        shop.checks("success")
        assert await shop.once() == []
        assert shop.request.row["title"].startswith("Draft:")


async def test_without_rounds_it_is_only_told(gitlab_forge: GitLabYard, tmp_path: Path) -> None:
    """S2P.14"""
    async with shop_of(gitlab_forge, tmp_path, verifications=0) as shop:
        shop.script(written("add.py", STUB), {"text": "Done."})
        assert await shop.once() == ["done"]
        assert len(runs(shop)) == 1
        assert "not finished" in shop.ours()[-1]


async def test_a_plan_is_one_comment_that_is_ticked_off(gitlab_forge: GitLabYard, tmp_path: Path) -> None:
    """S2P.13: and a step that is left open is not done."""
    steps = [{"name": "Write it"}, {"name": "Tell it"}]
    plan = {"tool": "plan/propose", "args": {"name": "p", "goal": "Mend add", "steps": steps}}
    async with shop_of(gitlab_forge, tmp_path) as shop:
        ticked = [
            {"tool": "plan/update_step", "args": {"step_id": "1", "status": status}}
            for status in ("in_progress", "completed")
        ]
        shop.script(
            {"text": "A plan.", "calls": [plan]},
            {"text": "Begin.", "calls": [{"tool": "plan/approve", "args": {}}]},
            written("add.py", WHOLE),
            {"text": "Ticked.", "calls": ticked},
            *({"text": f"It is done, {n}."} for n in range(3)),
        )
        assert await shop.once() == ["done"]
        (shown,) = [body for body in shop.ours() if body.startswith("<!-- daiku:progress -->")]
        assert "- [x] Write it\n- [ ] Tell it" in shown
        assert "*Progress: 1/2 (50%)*" in shown
        assert "**Status:** stopped" in shown
        assert "Reason: The last look at the work found what is not finished: Tell it" in shop.ours()[-1]


def ran(command: str) -> Line:
    return {"text": "I run a command.", "calls": [{"tool": "shell/run", "args": {"command": command}}]}


async def test_what_a_command_changed_is_looked_at_and_listed(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """B23.2: the record has no edit; the tree has one. The unfinished line is seen, and the request lists the files."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(
            ran("sed -i 's/return a - b/raise NotImplementedError/' calc.py && touch made.txt"),
            {"text": "All of it is done."},
            ran("sed -i 's/raise NotImplementedError/return a + b  # FIXME: later/' calc.py"),
            {"text": "Now it is whole."},
            {"text": "The rest comes later."},
        )
        assert await shop.once() == ["done"]
        assert len(runs(shop)) == 3
        told = shop.request.row["description"].partition("### Files changed")[2]
        assert "No files were changed" not in told
        assert "`calc.py`" in told
        assert "`made.txt`" in told
        assert "FIXME: later" in told
        assert "NotImplementedError" not in told
        assert "not finished" in shop.ours()[-1]


async def test_a_branch_that_is_there_is_left_alone_and_another_name_is_taken(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """B23.4: it is looked up before the model is asked."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.project.git("branch", BRANCH, "main")
        theirs = shop.project.commit_of(BRANCH)
        shop.script(written("add.py", WHOLE), {"text": "Done."})
        assert await shop.once() == ["done"]
        assert shop.item.branch == f"{BRANCH}-2"
        assert shop.project.commit_of(BRANCH) == theirs
        assert shop.project.git("show", f"{BRANCH}-2:add.py") == WHOLE.strip()
        assert shop.request.row["source_branch"] == f"{BRANCH}-2"


async def test_an_item_that_reached_a_limit_without_a_change_is_not_done(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """B23.4: there is nothing to review."""
    async with shop_of(gitlab_forge, tmp_path, max_rounds=1) as shop:
        shop.script(ran("ls"), ran("ls"), {"text": "I looked."}, {"text": "I looked."})
        assert await shop.once() == ["failed"]
        assert "a limit was reached" in shop.ours()[-1]
        assert "No files were changed" in shop.ours()[-1]


async def test_work_whose_last_check_failed_is_not_told_as_done(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    """B23.1: the request stays a draft with the reasons, and the item needs a person."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(
            written("add.py", WHOLE),
            ran("python3 -m unittest no_such_test"),
            *({"text": f"All tests pass, {n}."} for n in range(6)),
        )
        assert await shop.once() == ["failed"]
        assert "The work is done" not in shop.ours()[-1]
        assert "nothing verifies that it is done" in shop.ours()[-1]
        told = shop.request.row["description"]
        assert "### Not verified" in told
        assert "no_such_test" in told.partition("### Not verified")[2]
        assert shop.request.row["title"].startswith("Draft:")
        assert "coding agent failed" in shop.issue.row["labels"]
