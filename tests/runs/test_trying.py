"""A command that would be asked about runs first where its writes are discarded: in real runs, with nobody to answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.app import build
from daiku.doctor import check_app
from daiku.domain.events import ApprovalAsked
from daiku.guard.sandbox import bubblewrap, overlay
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.attacks.victim import snapshot
from tests.runs.playing import shell
from tests.runs.test_level_sandbox import SECRET, play, results

pytestmark = [
    pytest.mark.slow,  # real sandboxes
    # The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
    pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha\n")
    (folder / "src" / "mod.py").write_text("x = 1\n")
    return folder


READS = (
    "awk '{print $1}' a.txt",
    "for f in src/*.py; do wc -l $f; done",
    "cd src && python3 -c 'import mod; print(mod.x)'",
    'python3 -c \'open("a.txt", "r+").close()\'',
    "echo $HOME",
    "mktemp > /dev/null; rm -f /tmp/tmp.*",
    "test -e missing",
    "echo gone > a.txt.tmp && rm a.txt.tmp",
)
WRITES = (
    "touch made",
    "echo x >> a.txt",
    "rm a.txt",
    "chmod 700 src",
    "touch -d 2001-01-01 a.txt",
    "rm -r src && mkdir src",
    "mv a.txt b.txt",
    "ln -s a.txt l",
    "(echo late > late.txt)",
    "echo x > /tmp/kept",
    "touch made; false",
    "touch made 2>/dev/null; true",
    "git init -q .",
)


@pytest.mark.parametrize("command", READS)
async def test_commands_that_only_read_need_no_approval(tmp_path: Path, project: Path, command: str) -> None:
    before = snapshot(project)
    watch = await play(tmp_path, "none", shell(command))
    assert results(watch)[0][0] in ("done", "failed"), [str(c.event) for c in watch.chunks]
    assert snapshot(project) == before


@pytest.mark.parametrize("command", WRITES)
async def test_commands_that_write_are_asked_about_and_change_nothing_before(
    tmp_path: Path, project: Path, command: str
) -> None:
    before = snapshot(project)
    watch = await play(tmp_path, "none", shell(command))
    assert results(watch)[0][0] == "unattended"
    assert snapshot(project) == before
    asked = next(chunk.event for chunk in watch.chunks if isinstance(chunk.event, ApprovalAsked))
    assert "it writes" in asked.why


async def test_a_trial_sees_no_secrets_and_its_failure_is_asked_about(tmp_path: Path, project: Path) -> None:
    (project / ".env").write_text(f"note: {SECRET}\n")
    reads = "python3 -c \"print(open('.e' + 'nv').read())\""
    watch = await play(tmp_path, "none", shell(reads), shell(f"{reads} || true"), shell("cat .env"))
    assert [outcome for outcome, _ in results(watch)] == ["unattended", "done", "unattended"]
    assert not any(SECRET in text for _, text in results(watch))


async def test_a_trial_reaches_no_network_and_no_other_place(tmp_path: Path, project: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    line = f"echo x > {outside}/x; echo y > {Path.home()}/daiku-probe; exec 3<>/dev/tcp/127.0.0.1/22"
    await play(tmp_path, "none", shell(line))
    assert list(outside.iterdir()) == []
    assert not (Path.home() / "daiku-probe").exists()


async def test_a_long_command_is_asked_about(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.tools.shell.trying.TRIAL_SECONDS", 0.2)
    watch = await play(tmp_path, "none", shell("while true; do :; done"))
    assert results(watch)[0][0] == "unattended"


async def test_an_untrusted_folder_or_a_missing_sandbox_is_asked_at_once(
    tmp_path: Path, project: Path
) -> None:
    watch = await play(tmp_path, "none", shell("awk 1 a.txt"), sandbox=False)
    assert results(watch)[0][0] == "unattended"


MOUNTS = {
    "no overlay": "exit 117",
    "no nested namespaces": "exit 1",
    "mount does nothing": 'while [ "$1" != -- ]; do shift 3; done; shift; exec "$@"',
}


@pytest.mark.parametrize("mount", MOUNTS)
async def test_without_overlays_commands_are_asked_about_and_the_doctor_says_so(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, mount: str
) -> None:
    """A23.7: as on machines that allow bubblewrap no nested namespaces."""
    monkeypatch.setattr(overlay, "_MOUNT", MOUNTS[mount])
    overlay.can_overlay.cache_clear()
    try:
        before = snapshot(project)
        watch = await play(tmp_path, "none", shell("awk 1 a.txt"), shell("cat a.txt"), shell("touch made"))
        assert [outcome for outcome, _ in results(watch)] == ["unattended", "done", "unattended"]
        assert snapshot(project) == before
        app = build(Config(), workspace=DiskWorkspace((project,)), home=tmp_path / "home")
        found = [each for each in await check_app(app) if each.area == "sandbox"]
        await app.aclose()
        assert [(each.state, "cannot discard" in str(each.what)) for each in found] == [("note", True)]
    finally:
        overlay.can_overlay.cache_clear()
