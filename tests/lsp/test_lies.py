"""A model that claims more than it did, over LSP: each row of the table in `tests/cli/test_lies.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.runs import RunResult
from tests.cli.test_lies import ASKED, CASES, lines_of, write_project
from tests.lsp.conftest import connected, write_script

SETTINGS = {"llm": {"provider": "scripted"}, "sandbox": {"mode": "off"}, "playbook": {"reflections": 0}}


@pytest.mark.parametrize("case", CASES)
async def test_an_editor_gets_the_verdict_and_its_reasons(case: str, workspace: Path) -> None:
    *_, reasons = CASES[case]
    write_project(workspace)
    model = write_script(workspace, *lines_of(case))
    async with connected(workspace, settings=SETTINGS) as server:
        asked = {"text": ASKED, "model": model, "approvals": "all", "partialResultToken": "a"}
        result = RunResult.model_validate(await server.client.request("daiku/chat", asked))
        finished = [chunk["data"] for chunk in server.client.chunks("a") if chunk["type"] == "run_finished"]
    assert [reason.kind for reason in result.reasons] == reasons
    assert result.status == ("completed_unverified" if reasons else "completed")
    assert result.unchecked == (case == "edit_never_tested")
    assert [reason["kind"] for reason in finished[-1]["reasons"]] == reasons
