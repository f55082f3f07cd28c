"""`--continue` with another role: it is told what was done before it, through the real command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Daiku

WRITTEN = "File: `a.py`:\n\n```python\nprint('by the coder')\n```\n"
RUN = '{"commands": ["python3 a.py"]}'


@pytest.mark.parametrize("told", ["print('by the coder')", "write a program that says who made it"])
def test_exec_after_code_is_told_what_was_written_and_asked(
    told: str, script: Callable[..., str], daiku: Daiku, workspace: Path
) -> None:
    model = script({"text": WRITTEN}, {"text": RUN, "when": told})
    wrote = daiku("code", "--model", model, "--approve", "edits", "write a program that says who made it")
    assert (wrote.code, (workspace / "a.py").read_text()) == (0, "print('by the coder')\n")
    ran = daiku("exec", "--model", model, "--approve", "all", "--continue", "--json", "run it")
    output: list[dict[str, Any]] = [c["data"] for c in ran.chunks() if c["type"] == "tool_response"]
    assert ran.code == 0, ran.err
    assert ["by the coder" in each["result"] for each in output] == [True]
