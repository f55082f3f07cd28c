"""`daiku document FILE INSTRUCTION` in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.cli.main import main
from tests.agents.drafting.revising import SCORES, drafted, issues, said


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
