"""One request through the server, as the README draws it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.walk import END, README, START, drawing, one_request, rooms

ROOMS = 40


@pytest.mark.slow
async def test_the_readme_draws_the_rooms_that_a_request_really_goes_through(workspace: Path) -> None:
    order = await one_request(workspace)
    drawn = README.read_text(encoding="utf-8").partition(START)[2].partition(END)[0].strip()
    assert drawn == drawing(order), "draw it anew: npm run walk"
    assert len(rooms(order)) <= ROOMS
