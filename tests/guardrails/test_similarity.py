"""The similarity guard: near-copies are caught, honest texts are not; its thresholds; what it compares with."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import Notice, ToolResponse
from daiku.domain.guardrails import GuardrailAnswer
from daiku.domain.tools import ToolCall
from daiku.guard.guardrails.configured import SecretsGuard
from daiku.guard.guardrails.references import WorkspaceReferences, load_corpus
from daiku.guard.guardrails.similarity import SimilarityGuard
from daiku.guard.rules.guardrails.fingerprints import WARN, fingerprints, similarity, similarity_action
from daiku.guard.rules.guardrails.written import call_text
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config, GuardrailSettings
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each
from tests.guardrails.similarity import ENGLISH, JAPANESE, REFERENCES, renamed, report, shares, source_of
from tests.runs.playing import Watch


def test_near_copies_are_caught_and_honest_texts_are_not() -> None:
    """R1.63, R1.64, R1.65; X.25: at least 95 % of 50 near-copies, at most 2 % of 200 honest texts."""
    copies, others = shares()
    sys.stderr.write(report())
    assert (len(copies), len(others)) == (50, 200)
    assert sum(case.score >= WARN for case in copies) >= 0.95 * len(copies)
    assert sum(case.score >= WARN for case in others) <= 0.02 * len(others)


@for_each(
    ("score", "action"),
    [
        (0.0, "pass"), (0.27, "pass"), (0.2799, "pass"), (0.28, "warn"), (0.35, "warn"), (0.40, "warn"),
        (0.4001, "block"), (1.0, "block"),
    ],
)  # fmt: skip
def test_both_thresholds_belong_to_the_warning(score: float, action: str) -> None:
    """R1.63, R1.64, R1.65; C1.5"""
    assert similarity_action(score) == action


def test_the_share_of_a_copied_part_is_the_score() -> None:
    one, two = fingerprints(ENGLISH[0]), fingerprints(ENGLISH[1])
    assert similarity(one, one) == 1
    assert similarity(one, two) == 0
    assert 0.9 <= similarity(fingerprints(f"{ENGLISH[0]} {ENGLISH[1]}"), one) <= 1, "inside a longer text"


def test_too_little_to_compare_is_like_nothing() -> None:
    assert similarity(fingerprints("return self"), fingerprints("return self")) == 0
    assert similarity(fingerprints(""), fingerprints(ENGLISH[0])) == 0


def test_code_in_a_fence_is_compared_as_code() -> None:
    code = source_of(REFERENCES[0])
    said = f"Here it is, in words of my own:\n\n```python\n{renamed(code)}\n```\n\nIt wraps."
    assert similarity(fingerprints(said), fingerprints(code)) > 0.9


async def test_a_guard_compares_with_the_texts_that_it_is_given() -> None:
    guard = SimilarityGuard(references={"harbour": ENGLISH[0], "港": JAPANESE[0]}, with_corpus=False)
    blocked = await guard.validate_output(f"As they say: {ENGLISH[0]}")
    assert blocked["action"] == "block"
    assert "harbour" in blocked["reason"]
    assert "港" in (await guard.validate_output(JAPANESE[0]))["reason"]
    assert (await guard.validate_output(ENGLISH[1]))["action"] == "pass"
    assert (await guard.validate_input(ENGLISH[0]))["action"] == "pass", "a person may show what they want"


async def test_the_corpus_names_its_licences_and_holds_no_text() -> None:
    assert len(load_corpus()) >= 12
    assert all(name.endswith(")") and "(" in name for name in load_corpus())
    code = renamed(source_of("markupsafe:Markup"))
    answer = await SimilarityGuard().validate_output(code)
    assert (answer["action"], "BSD-3-Clause" in answer["reason"]) == ("block", True)


def test_thresholds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="warn must be at most block"):
        SimilarityGuard(warn=0.5, block=0.4)


def test_reference_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    found = WorkspaceReferences((tmp_path,), (".daiku/references/**",))
    assert not found.any()
    folder = tmp_path / ".daiku/references/old"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(ENGLISH[0])
    (folder / "b.bin").write_bytes(b"\0" * 100)
    (tmp_path / "own.md").write_text(ENGLISH[1])
    (folder / "link.md").symlink_to(tmp_path / "own.md")
    assert found.any()
    assert list(found.read()) == [".daiku/references/old/a.md", ".daiku/references/old/b.bin"]
    before = found.read()[".daiku/references/old/a.md"]
    (folder / "a.md").write_text(ENGLISH[2])
    assert found.read()[".daiku/references/old/a.md"] != before


async def test_where_no_references_can_be_no_thread_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reply and every call asks; a folder that is made meanwhile counts at once."""
    guard = SimilarityGuard(references=WorkspaceReferences((tmp_path,), (".daiku/references/**",)))
    threads = list[object]()
    to_thread = asyncio.to_thread

    async def counted(work: Callable[[str], GuardrailAnswer], said: str) -> GuardrailAnswer:
        threads.append(work)
        return await to_thread(work, said)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    assert (await guard.validate_output(ENGLISH[0]))["action"] == "pass"
    assert not threads
    folder = tmp_path / ".daiku/references"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(ENGLISH[0])
    assert (await guard.validate_output(ENGLISH[0]))["action"] == "block"
    assert len(threads) == 1


def test_references_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/x.md").write_text(ENGLISH[0])
    (tmp_path / "y.txt").write_text(ENGLISH[1])
    assert list(WorkspaceReferences((tmp_path,), ("docs/*.md",)).read()) == ["docs/x.md"]
    assert list(WorkspaceReferences((tmp_path,), ("*.txt",)).read()) == ["y.txt"]
    assert list(WorkspaceReferences((tmp_path,), ("../**",)).read()) == []


@pytest.mark.parametrize(
    ("call", "judged"),
    [
        (
            {"tool": "files/edit", "args": {"path": "a", "edits": [{"search": "gone", "replace": "new"}]}},
            "files/edit\na\nnew",
        ),
        (
            {"tool": "files/patch", "args": {"patch": "--- a\n+++ a\n@@ -1 +1 @@\n-gone\n+new\n there\n"}},
            "files/patch\n--- a\n+++ a\n+new\n",
        ),
        ({"tool": "files/write", "args": {"path": "a", "content": "new"}}, "files/write\na\nnew"),
        ({"tool": "x/y", "args": {"n": 1, "deep": {"list": ["a", None, True]}}}, "x/y\n1\na\nTrue"),
    ],
)
def test_of_an_edit_only_what_it_puts_in_is_judged(call: dict[str, Any], judged: str) -> None:
    assert call_text(ToolCall.model_validate(call)) == judged


async def _played(folder: Path, *lines: dict[str, Any], settings: GuardrailSettings) -> tuple[Any, Watch]:
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"),
        approvals=ApprovalSettings(edit="allow"),
        sandbox=SandboxSettings(mode="off"),
        guardrails=settings,
    )
    app, watch = build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home"), Watch()
    result = await app.runs.run(RunRequest("write about the ferry"), watch)
    await app.aclose()
    return result, watch


async def test_references_of_a_workspace_judge_answers_and_edits(tmp_path: Path) -> None:
    """PROTOCOL 2: `guardrails.references`, `similarity_warn`, `similarity_block`."""
    folder = tmp_path / "project/.daiku/references"
    folder.mkdir(parents=True)
    (folder / "ferry.md").write_text(ENGLISH[0])
    write = {"calls": [{"tool": "files/write", "args": {"path": "mine.md", "content": ENGLISH[0]}}]}
    result, watch = await _played(tmp_path, write, {"text": "I could not."}, settings=GuardrailSettings())
    answer = next(c.event for c in watch.chunks if isinstance(c.event, ToolResponse))
    assert (result.status, answer.outcome) == ("completed_unverified", "denied")
    assert [reason.kind for reason in result.reasons] == ["edit_not_applied"]
    assert "ferry.md" in answer.result
    assert not (tmp_path / "project/mine.md").exists()
    result, watch = await _played(tmp_path, {"text": ENGLISH[0]}, settings=GuardrailSettings())
    assert (result.status, result.error.kind, result.text) == ("failed", "guardrail", "")
    assert "delta" not in {c.type for c in watch.chunks}
    loose = GuardrailSettings(similarity_block=1)
    result, watch = await _played(tmp_path, {"text": ENGLISH[0]}, settings=loose)
    assert (result.status, result.text) == ("completed", ENGLISH[0])
    assert any(isinstance(c.event, Notice) and "ferry.md" in c.event.text for c in watch.chunks)
    result, watch = await _played(tmp_path, {"text": ENGLISH[0]}, settings=GuardrailSettings(references=()))
    assert result.status == "completed"


async def test_a_workspace_without_references_has_no_such_guard(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    result, watch = await _played(
        tmp_path, {"text": renamed(source_of("markupsafe:Markup"))}, settings=GuardrailSettings()
    )
    assert result.status == "completed"
    assert "delta" in {c.type for c in watch.chunks}


async def test_a_secret_does_not_leave_in_an_answer_or_a_call() -> None:
    guard = SecretsGuard(secrets=("correct horse",))
    for said in ("the key is ghp_" + "a1" * 18, "it is correct horse", {"args": ["Y29ycmVjdCBob3JzZQ"]}):
        assert (await guard.validate_output(said))["action"] == "block"
        assert (await guard.screen_output(said))["action"] == "block"
    assert (await guard.validate_output("nothing here"))["action"] == "pass"
    assert (await guard.validate_input("my key is ghp_" + "a1" * 18))["action"] == "pass"
    warns = SecretsGuard(action="warn")
    assert (await warns.validate_output("ghp_" + "a1" * 18))["action"] == "warn"
    assert guard.judges_output
    assert not warns.judges_output


async def test_ten_megabytes_are_compared_beside_the_loop() -> None:
    guard = SimilarityGuard(references={"harbour": ENGLISH[0]})
    comparing = asyncio.create_task(guard.validate_output("word " * 2_000_000))
    turns = 0
    while not comparing.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert (await comparing)["action"] == "pass"
    assert turns > 1
