"""What a sandboxed command can write, see and reach; and what happens where there is no sandbox."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.domain.events import Notice
from daiku.guard.sandbox import bubblewrap, own_scratch, sandbox_state
from daiku.workspace import programs
from daiku.workspace.programs import build_safe_path
from tests.tools.shell.test_shell import Bench, data

pytestmark = pytest.mark.slow  # real sandboxes

# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name in (".ssh", ".aws", "other"):
        (home / name).mkdir(parents=True)
        (home / name / "key").write_text("PRIVATE")
    (home / ".netrc").write_text("PRIVATE")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def bench(home: Path, workspace: Path) -> Bench:
    return Bench(workspace.resolve(), SandboxSettings())


@needs_bubblewrap
async def test_it_writes_in_the_workspace_and_tmp_and_nowhere_else(bench: Bench, home: Path) -> None:
    outside = home / "other" / "key"
    result = await bench.run(
        f"echo a > in.txt; echo b > /tmp/daiku-probe && cat /tmp/daiku-probe; echo c > {outside}; touch /etc/daiku /usr/daiku {home}/x"
    )
    assert (bench.root / "in.txt").read_text() == "a\n"
    assert "b\n" in data(result)["output"]
    assert outside.read_text() == "PRIVATE"
    assert not (home / "x").exists()
    assert not Path("/etc/daiku").exists()
    assert not Path("/tmp/daiku-probe").exists()


@needs_bubblewrap
async def test_go_finds_a_build_cache_that_it_can_write(bench: Bench, home: Path) -> None:
    cache = home / ".cache" / "go-build"
    cache.mkdir(parents=True)
    result = await bench.run("mkdir -p ~/.cache/go-build && touch ~/.cache/go-build/x && echo made")
    assert "made" in data(result)["output"]
    assert list(cache.iterdir()) == []


@needs_bubblewrap
async def test_what_a_task_left_in_its_own_tmp_and_home_no_other_finds(bench: Bench) -> None:
    with own_scratch():
        await bench.run("echo left > /tmp/left; echo left > ~/left")
        assert "left" in data(await bench.run("cat /tmp/left ~/left"))["output"]
    with own_scratch():
        result = await bench.run("cat /tmp/left ~/left")
    assert data(result)["exitCode"] == 1


@needs_bubblewrap
async def test_it_cannot_be_made_writable_again_not_even_by_root(bench: Bench, home: Path) -> None:
    await bench.run("mount -o remount,rw / ; mount -o remount,bind,rw / ; umount / ; touch /etc/daiku")
    assert not Path("/etc/daiku").exists()


@needs_bubblewrap
async def test_links_do_not_lead_out(bench: Bench, home: Path) -> None:
    (bench.root / "link").symlink_to(home / "other")
    await bench.run("echo x > link/key; echo y > link/new; ln -s /etc out; touch out/daiku")
    assert (home / "other" / "key").read_text() == "PRIVATE"
    assert not (home / "other" / "new").exists()


@needs_bubblewrap
@pytest.mark.parametrize("place", ["~/.ssh/key", "~/.aws/key", "~/.netrc", "$DAIKU_STATE/daiku.db"])
async def test_secrets_of_the_person_cannot_be_seen(bench: Bench, daiku_home: Path, place: str) -> None:
    (daiku_home / "daiku.db").write_text("PRIVATE")
    result = await bench.run(f"DAIKU_STATE={daiku_home}; cat {place}")
    assert "PRIVATE" not in result.text


@needs_bubblewrap
@pytest.mark.parametrize(
    "place",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".vscode/settings.json",
        ".github/workflows/ci.yml",
        "AGENTS.md",
        "x.code-workspace",
    ],
)
async def test_protected_files_stay_as_they_are(bench: Bench, place: str) -> None:
    file = bench.root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    # Written by a program, not by anything that the guard can read in the command line.
    (bench.root / "evil.py").write_text(
        f"import os, pathlib\np = pathlib.Path({place!r})\n"
        "for act in (lambda: p.write_text('evil'), p.unlink, lambda: os.rename('evil.py', p), lambda: os.rename(p.parent, 'moved')):\n"
        "    try:\n        act()\n    except OSError:\n        pass\n"
    )
    await bench.run("python3 evil.py")
    assert file.read_text() == "mine"


@needs_bubblewrap
async def test_a_new_protected_file_is_told(bench: Bench) -> None:
    (bench.root / "evil.py").write_text(
        "import os; os.mkdir('.vscode'); open('.vscode/tasks.json', 'w').write('{}')"
    )
    await bench.run("python3 evil.py")
    assert any(isinstance(e, Notice) and ".vscode" in e.text for e in bench.events)


@needs_bubblewrap
async def test_what_only_reads_runs_where_nothing_can_be_written(bench: Bench) -> None:
    (bench.root / ".env").write_text("TOKEN=PRIVATE")
    (bench.root / "a").write_text("TOKEN here")
    result = await bench.run("grep -r TOKEN .")
    assert "TOKEN here" in result.text
    assert "PRIVATE" not in result.text


@needs_bubblewrap
@pytest.mark.parametrize("driver", ["core.fsmonitor", "diff.evil.textconv", "filter.evil.clean"])
async def test_a_hostile_repository_writes_nothing_when_git_looks_at_it(bench: Bench, driver: str) -> None:
    canary = bench.root / "CANARY"
    (bench.root / "evil.sh").write_text(f'#!/bin/sh\ntouch {canary}\ncat "$@"\n')
    (bench.root / "evil.sh").chmod(0o755)
    (bench.root / ".gitattributes").write_text("*.txt diff=evil filter=evil\n")
    (bench.root / "a.txt").write_text("one\n")
    await bench.run("git init -q . && git add a.txt")
    with (bench.root / ".git" / "config").open("a") as config:
        section, _, key = driver.rpartition(".")
        name, _, sub = section.partition(".")
        config.write(f"[{name}{f' {chr(34)}{sub}{chr(34)}' if sub else ''}]\n{key} = {bench.root}/evil.sh\n")
    (bench.root / "a.txt").write_text("two\n")
    for command in ("git status", "git diff", "git log -p"):
        await bench.run(command)
    assert not canary.exists()


@pytest.fixture
def server() -> Iterator[tuple[int, list[str]]]:
    hits: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name in the base class
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running.server_port, hits
        running.shutdown()
        thread.join()


FETCH = "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:{}/\", timeout=3)'"


@needs_bubblewrap
async def test_there_is_no_network_until_it_is_granted(bench: Bench, server: tuple[int, list[str]]) -> None:
    port, hits = server
    assert not (await bench.run(FETCH.format(port))).ok
    assert hits == []
    assert (await bench.run(FETCH.format(port), network=True)).ok
    assert hits == ["/"]


@needs_bubblewrap
async def test_names_are_not_resolved_without_network_and_the_model_is_told_what_to_do(bench: Bench) -> None:
    result = await bench.run("getent hosts example.org || echo 'Could not resolve host: example.org'; false")
    assert "network: true" in result.text


@needs_bubblewrap
async def test_other_processes_and_their_environment_cannot_be_seen(bench: Bench) -> None:
    result = await bench.run(
        f"cat /proc/{os.getpid()}/environ; kill -0 {os.getpid()}; ls /proc | grep -c '^[0-9]'"
    )
    assert "No such" in result.text
    assert int(data(result)["output"].strip().splitlines()[-1]) < 20


@needs_bubblewrap
async def test_where_path_leads_is_not_looked_up_for_each_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "KNOWN_SECONDS", 1e9)
    await bench.run("true")
    looked: list[str] = []
    resolve = Path.resolve

    def counted(self: Path, strict: bool = False) -> Path:
        looked.append(str(self))
        return resolve(self, strict)

    monkeypatch.setattr(Path, "resolve", counted)
    await bench.run("true")
    folders = set(os.environ["PATH"].split(os.pathsep))
    assert not folders & set(looked)


@needs_bubblewrap
async def test_settings_add_folders_that_may_be_written(home: Path, workspace: Path) -> None:
    bench = Bench(workspace.resolve(), SandboxSettings(write=("~/other",)))
    assert (await bench.run("echo x > ~/other/new")).ok
    assert (home / "other" / "new").read_text() == "x\n"


def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, broken: bool) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "touch", "cat", "sleep"):
        for folder in ("/bin", "/usr/bin"):
            if Path(folder, name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(folder, name))
    if broken:
        (tools / "bwrap").write_text("#!/bin/sh\nexit 1\n")
        (tools / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())


@pytest.mark.parametrize("broken", [False, True], ids=["absent", "broken"])
async def test_a_missing_sandbox_is_said_aloud(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, broken: bool
) -> None:
    without_bubblewrap(monkeypatch, tmp_path, broken=broken)
    assert sandbox_state(SandboxSettings()) == "missing"
    assert (await bench.run("touch x")).ok
    said = [e.text for e in bench.events if isinstance(e, Notice) and e.level == "warning"]
    assert any("sandbox" in text for text in said)
    assert not any("ask" in text for text in said)  # with approvals `all` nobody was


@pytest.mark.parametrize("broken", [False, True], ids=["absent", "broken"])
async def test_strict_refuses_without_a_sandbox(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, broken: bool
) -> None:
    without_bubblewrap(monkeypatch, tmp_path, broken=broken)
    assert sandbox_state(SandboxSettings(mode="strict")) == "refused"
    bench = Bench(workspace.resolve(), SandboxSettings(mode="strict"))
    assert not (await bench.run("touch x")).ok
    assert not (bench.root / "x").exists()


async def test_strict_never_runs_outside_the_sandbox(home: Path, workspace: Path) -> None:
    bench = Bench(workspace.resolve(), SandboxSettings(mode="strict"))
    assert not (await bench.run("touch x", sandbox=False)).ok
    assert not (bench.root / "x").exists()


def test_a_path_keeps_only_absolute_folders_outside_the_workspace(tmp_path: Path) -> None:
    inside = tmp_path / "w" / "bin"
    inside.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inside)
    given = f".::bin:{inside}:{tmp_path / 'link'}:/usr/bin:/usr/bin:/bin:~/bin:"
    assert build_safe_path(given, (tmp_path / "w",)) == "/usr/bin:/bin"
