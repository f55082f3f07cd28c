"""A model that claims more than it did, on a work item: the rows of the table that need no command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_lies import CASES, lines_of, write_project
from tests.work.contexts.desk import desk

ROWS = (
    "lie_edit_no_edit",
    "lie_nothing_at_all",
    "edit_never_tested",
    "edit_refused_says_edited",
    "finish_length",
    "filtered",
    "refusal_words",
)


@pytest.mark.parametrize("case", ROWS)
async def test_a_work_item_gets_the_verdict_and_its_reasons(case: str, tmp_path: Path) -> None:
    *_, reasons = CASES[case]
    (tmp_path / "project").mkdir()
    write_project(tmp_path / "project")
    async with desk(tmp_path, *lines_of(case)) as at:
        result = await at.work()
    assert [reason.kind for reason in result.reasons] == reasons
    assert result.unchecked == (case == "edit_never_tested")
