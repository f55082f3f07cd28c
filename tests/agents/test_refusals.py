"""Roles whose reply stays in words: the run ends failed, whatever protocol its model speaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.acting import act, app_with

REFUSAL = "I would rather not."


@pytest.mark.parametrize("protocol", ["native", "action_list"])
@pytest.mark.parametrize("agent", ["planner", "researcher", "coder", "runner"])
async def test_a_role_that_says_twice_that_it_would_rather_not_has_failed(
    tmp_path: Path, agent: str, protocol: str
) -> None:
    """A23.4: R0.34, R0.50, R0.63, R0.72, R0.86"""
    app = app_with(tmp_path, *[{"text": REFUSAL}] * 2, protocol=protocol)
    result, _, _ = await act(app, agent)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "format"
    await app.aclose()
