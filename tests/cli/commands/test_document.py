"""`daiku document FILE INSTRUCTION` in the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daiku.fronts.cli.main import main
from tests.agents.drafting.revising import SCORES, drafted, issues, said
from tests.conftest import ROOT

LEARNT = {"agent": "and now you learn", "text": json.dumps({"lessons": ["Say the result first."]})}
STDINS = ("</dev/null", "<&-", "< <(printf 'y\\ny\\n')", "< <(:)")
"""Ways in which nobody is at the terminal."""


def test_a_document_is_revised_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PROTOCOL 3, R1.60."""
    monkeypatch.setenv("DAIKU_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.md").write_text("# A\n\nold words\n")
    lines = [said("draft", drafted("# A\n\nnew words")), said("style", issues()), said("eval", SCORES)]
    (project / "s.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    args = ["document", "a.md", "Renew", "it", "-C", str(project), "--model", "scripted/s.jsonl"]
    assert main([*args, "--approve", "edits", "--depth", "2", "--json"]) == 0
    assert (project / "a.md").read_text() == "# A\n\nnew words\n"
    chunks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    started = next(c for c in chunks if c["type"] == "run_started")
    assert (started["data"]["prompt"], started["data"]["brief"]["document"]["depth"]) == ("Renew it", 2)
    (project / "a.md").write_text("# A\n\nold words\n")
    assert main([*args, "--approve", "none"]) == 4, "nobody is there to say yes"
    assert (project / "a.md").read_text() == "# A\n\nold words\n"
    assert main(["document", "/etc/hostname", "x", "-C", str(project)]) in (1, 2)
    assert "outside" in capsys.readouterr().err


def reflecting(project: Path, stdin: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`daiku reflect` as a process of its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "LC_ALL": "C.UTF-8"}
    words = " ".join(("reflect", "--model", "scripted/s.jsonl", *options))
    return subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m daiku {words} {stdin}'],
        cwd=project, env=environ, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project one of whose texts was judged."""
    monkeypatch.setenv("DAIKU_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.md").write_text("# A\n\nold words\n")
    plays(project, said("draft", drafted("# A\n\nnew words")), said("style", issues()), said("eval", SCORES))
    args = ["document", "a.md", "Renew", "it", "-C", str(project), "--model", "scripted/s.jsonl"]
    assert main([*args, "--approve", "edits"]) == 0
    return project


def plays(project: Path, *lines: dict[str, Any]) -> None:
    (project / "s.jsonl").write_text("\n".join(json.dumps(line) for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize("stdin", STDINS)
def test_lessons_wait_for_a_person_where_nobody_is_at_the_terminal(judged: Path, stdin: str) -> None:
    """PROTOCOL 1: exit code 4 where something needed approval and got none; what is piped in answers nothing."""
    plays(judged, LEARNT)
    for options in ((), ("--approve", "edits"), ("--json",)):
        done = reflecting(judged, stdin, *options)
        assert done.returncode == 4, done.stderr
        assert not (judged / ".daiku/lessons.md").exists()
        assert ("approval_asked" in done.stdout, "Traceback" in done.stderr) == (False, False)
    chunks = [json.loads(line) for line in done.stdout.splitlines()]
    [answer] = [
        c["data"] for c in chunks if c["type"] == "tool_response" and c["data"]["tool"] == "document/apply"
    ]
    assert answer["outcome"] == "unattended"
    proposed = [
        c["data"]["args"]
        for c in chunks
        if c["type"] == "tool_call" and c["data"]["tool"] == "document/apply"
    ]
    assert "Say the result first." in json.dumps(proposed), "the proposal is on record"


@pytest.mark.slow
def test_reflecting_ends_with_the_code_of_what_came_of_it(judged: Path, tmp_path: Path) -> None:
    """PROTOCOL 1: 0 completed, 1 failed, 2 usage; each without anybody at the terminal."""
    plays(judged, *[{**LEARNT, "text": "no form at all"}] * 9)
    failed = reflecting(judged, "</dev/null")
    assert (failed.returncode, len(failed.stderr.strip().splitlines()) > 0) == (1, True)
    assert reflecting(judged, "</dev/null", "--nonsense").returncode == 2
    other = tmp_path / "other"
    other.mkdir()
    plays(other, LEARNT)
    assert reflecting(other, "</dev/null").returncode == 0, "there is nothing to learn from"
