"""The approval level `sandbox` in real runs: what runs without a question, and what the sandbox hides."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import ToolResponse
from daiku.domain.runs import ClientApprovals
from daiku.guard.sandbox import bubblewrap
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, make_app, shell

pytestmark = pytest.mark.slow  # real sandboxes
# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")
SECRET = "three plain words"
READ_SECRET = """python3 -c "print(open('.e' + 'nv').read())" """


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".env").write_text(f"note: {SECRET}\n")
    return folder


async def play(
    folder: Path,
    approvals: ClientApprovals,
    *calls: dict[str, Any],
    sandbox: bool = True,
    rules: tuple[str, ...] = (),
) -> Watch:
    """Run `calls` at the level `approvals`, with nobody there to answer."""
    made = make_app(folder, {"calls": list(calls)}, {"text": "Done."})
    await made.aclose()
    app = build(
        Config(
            llm=LLMSettings(model=f"scripted/{folder / 'script.jsonl'}"),
            sandbox=SandboxSettings(mode="auto" if sandbox else "off"),
            approvals=ApprovalSettings(commands_allow=rules),
        ),
        workspace=DiskWorkspace((folder / "project",)),
        home=folder / "home",
    )
    watch = Watch()
    try:
        await app.runs.run(RunRequest("go", approvals=approvals, attended=False), watch)
    finally:
        await app.aclose()
    return watch


def results(watch: Watch) -> list[tuple[str, str]]:
    """Return the outcome and the text of each tool call."""
    events = [chunk.event for chunk in watch.chunks]
    return [(str(e.outcome), str(e.result)) for e in events if isinstance(e, ToolResponse)]


@needs_bubblewrap
async def test_builds_run_without_a_question(tmp_path: Path, project: Path) -> None:
    watch = await play(tmp_path, "sandbox", shell("echo built > out.txt && cat out.txt"))
    assert results(watch)[0][0] == "done"
    assert (project / "out.txt").read_text() == "built\n"


@needs_bubblewrap
@pytest.mark.parametrize(("level", "shown"), [("sandbox", False), ("all", True)])
async def test_secrets_are_masked_only_if_nobody_allowed_the_command(
    tmp_path: Path, project: Path, level: ClientApprovals, shown: bool
) -> None:
    watch = await play(tmp_path, level, shell(READ_SECRET))
    outcome, text = results(watch)[0]
    assert outcome == ("done" if shown else "failed")
    assert (SECRET in text) == shown
    assert ("Files of secrets are hidden" in text) != shown


def commit_closed_file(project: Path) -> None:
    (project / "a.txt").write_text(f"{SECRET}\n")
    (project / ".daikuignore").write_text("a.txt\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "One")):
        subprocess.run(["git", *who, *words], cwd=project, check=True)


@needs_bubblewrap
@pytest.mark.parametrize("level", ["ask", "all", "sandbox"])
async def test_a_rule_or_a_level_shows_no_closed_file_of_the_history(
    tmp_path: Path, project: Path, level: ClientApprovals
) -> None:
    """A23.6: the committed text of what .daikuignore closes."""
    commit_closed_file(project)
    commands = (
        "git log -p -a",
        "git log --oneline -a",
        "git show HEAD --text",
        "git log --oneline && touch made",
    )
    watch = await play(tmp_path, level, *map(shell, commands), rules=("git", "touch"))
    assert SECRET not in str(results(watch))
    outcome, shown = results(watch)[-1]
    assert (outcome, "One" in shown) == ("done", True), shown


@needs_bubblewrap
async def test_what_leaves_the_sandbox_is_refused_without_a_user(tmp_path: Path, project: Path) -> None:
    outside = {"tool": "shell/run", "args": {"command": "touch a", "sandbox": False}}
    network = {"tool": "shell/run", "args": {"command": "touch b", "network": True}}
    watch = await play(tmp_path, "sandbox", outside, network, shell("echo x > .git/hooks/pre-commit"))
    assert {outcome for outcome, _ in results(watch)} == {"unattended"}
    assert [path.name for path in project.iterdir()] == [".env"]


async def test_without_a_sandbox_the_level_asks_and_says_so(tmp_path: Path, project: Path) -> None:
    watch = await play(tmp_path, "sandbox", shell("touch made"), sandbox=False)
    assert results(watch)[0][0] == "unattended"
    assert not (project / "made").exists()
