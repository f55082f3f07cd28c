"""Trace lines and chunks for goldens: what differs from run to run (times, ids) is numbered instead."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "trace"

ID = re.compile(r"\b([a-z]+)_[0-9a-f]{6,}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
TOOK = re.compile(r'("(?:duration_ms|durationMs)":)\d+')
TOKENS = re.compile(r'("(?:tok_prompt|tok_completion|promptTokens|completionTokens)":)[1-9]\d*')


def normalised(lines: str, *folders: Path) -> str:
    """JSON Lines with ids as `run_1`, `run_2` in the order in which they appear, every time as `TIME`, every duration
    as 0, tokens as 0 or 1 (they count the words of our prompts, and ids), and `folders` (such as the workspace) as `FOLDER_1`, `FOLDER_2`."""
    for number, folder in enumerate(folders, start=1):
        lines = lines.replace(json.dumps(str(folder))[1:-1], f"FOLDER_{number}")
    seen: dict[str, dict[str, int]] = {}

    def numbered(found: re.Match[str]) -> str:
        of_kind = seen.setdefault(found[1], {})
        return f"{found[1]}_{of_kind.setdefault(found[0], len(of_kind) + 1)}"

    timeless = TOOK.sub(r"\g<1>0", TIME.sub("TIME", ID.sub(numbered, lines)))
    return TOKENS.sub(r"\g<1>1", timeless)


def compare_with_golden(name: str, lines: str, *folders: Path) -> None:
    """Compare with tests/golden/trace/`name`.jsonl; with GOLDEN=write it is made anew."""
    found, golden = normalised(lines, *folders), GOLDEN / f"{name}.jsonl"
    if os.environ.get("GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, "utf-8")
    assert golden.is_file(), "GOLDEN=write makes it: then read it"
    assert found == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"
