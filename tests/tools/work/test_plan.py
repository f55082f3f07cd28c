"""What the tools of the plan tell the person."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from daiku.domain.events import Event, Notice
from daiku.domain.work.plans import Plan, Step
from daiku.settings.config import Config
from daiku.tools.tool import ToolContext
from daiku.tools.work.plan import ProposeArgs, StepArgs, propose
from daiku.workspace.disk import DiskWorkspace


@pytest.mark.parametrize(
    ("checks", "level"), [(("test -f a",), "info"), (("test -f a", "test -f b"), "info"), ((), "warning")]
)
async def test_a_plan_made_anew_warns_only_where_a_check_of_the_old_one_is_gone(
    tmp_path: Path, checks: tuple[str, ...], level: str
) -> None:
    old = Plan(
        name="p",
        goal="g",
        steps=(Step(name="one", acceptance=("test -f a",)), Step(name="two")),
        dropped_checks=("test -f gone",),
    )
    told: list[Event] = []
    nothing = cast(Any, None)
    context = ToolContext(
        "s", "r", "c", DiskWorkspace([tmp_path]), nothing, Config(), told.append, plans=lambda: (old,)
    )
    steps = (StepArgs(name="one", acceptance=checks), StepArgs(name="three"))
    done = await propose(ProposeArgs(plan_id=old.plan_id, steps=steps), context)
    assert done.ok
    assert [each.level for each in told if isinstance(each, Notice)] == [level]
