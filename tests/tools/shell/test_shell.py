"""Commands really run: output in order, exit codes, time-outs, nothing left behind, nothing leaked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.events import Event, Notice, ToolOutput
from daiku.domain.tools import ToolResult
from daiku.domain.work.patches import FileStat, Patch
from daiku.guard.sandbox import bubblewrap
from daiku.run.rules.outside import TextFile
from daiku.settings.config import Config
from daiku.texts.text import Text
from daiku.tools.shell import KillArgs, OutputArgs, RunArgs, kill, output, preview, run
from daiku.tools.shell.background import Jobs
from daiku.tools.shell.preparing import PreparedCommand, prepare
from daiku.tools.shell.process import start
from daiku.tools.tool import Preview, ToolContext
from daiku.workspace.checkpoints import CheckpointStore

pytestmark = pytest.mark.slow  # real commands


class Folder:
    """A workspace of one folder, as far as commands need one."""

    def __init__(self, root: Path) -> None:
        self.roots = (root,)

    def locate(self, path: str) -> Path:
        real = (self.roots[0] / path).resolve()
        if real != self.roots[0] and self.roots[0] not in real.parents:
            raise ToolValidationError(Failure(kind="tool", message=Text(f"{path} is outside the workspace.")))
        return real

    def relative(self, path: Path) -> str:
        return path.relative_to(self.roots[0]).as_posix()

    def hidden(self, path: Path) -> bool:
        return False

    def closed(self, path: Path) -> bool:
        return False

    def ignored(self, path: Path) -> bool:
        return False

    async def read(self, path: str) -> TextFile:
        raise NotImplementedError

    async def exists(self, path: str) -> bool:
        return self.locate(path).exists()

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        raise NotImplementedError


def context_of(root: Path, emit: Callable[[Event], Any], sandbox: SandboxSettings) -> ToolContext:
    workspace = Folder(root)
    return ToolContext(
        session="s",
        run="r",
        call_id="c",
        workspace=workspace,
        checkpoints=CheckpointStore(root.parent / "kept", workspace),
        config=Config(sandbox=sandbox),
        emit=emit,
    )


class Bench:
    """Runs commands in a workspace and keeps what they emit."""

    def __init__(self, root: Path, sandbox: SandboxSettings) -> None:
        self.root = root
        self.events: list[Event] = []
        self.jobs = Jobs()
        self.context = context_of(root, self.events.append, sandbox)

    async def run(self, command: str, **args: Any) -> ToolResult:
        return await run(RunArgs(command=command, **args), self.context, self.jobs)

    def shown(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, ToolOutput))


@pytest.fixture(params=["off", "auto"], ids=["bare", "sandboxed"])
async def bench(request: pytest.FixtureRequest, workspace: Path) -> AsyncIterator[Bench]:
    if request.param == "auto" and not bubblewrap():
        # The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
        pytest.skip("no working bubblewrap here")
    bench = Bench(workspace.resolve(), SandboxSettings(mode=request.param))
    yield bench
    for name in bench.jobs.names("s"):
        job = bench.jobs.get("s", name)
        assert job is not None
        await job.end()


def data(result: ToolResult) -> dict[str, Any]:
    assert result.data is not None
    return dict(result.data)


def alive(marker: str) -> list[str]:
    """Command lines of processes that carry `marker`."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line and "pytest" not in line:
                found.append(line)
    return found


async def gone(marker: str, within: float = 2.0) -> bool:
    deadline = time.monotonic() + within
    while alive(marker):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_success_is_exit_code_zero_with_the_output(bench: Bench) -> None:
    result = await bench.run("echo hello; pwd")
    assert result.ok
    assert data(result)["exitCode"] == 0
    assert data(result)["output"] == f"hello\n{bench.root}\n"
    assert "Exit code 0" in result.text
    assert "hello" in result.text


async def test_failure_has_its_exit_code_and_what_was_said(bench: Bench) -> None:
    result = await bench.run("echo why >&2; exit 3")
    assert not result.ok
    assert data(result)["exitCode"] == 3
    assert data(result)["output"] == "why\n"


async def test_stdout_and_stderr_come_in_the_order_they_were_written(bench: Bench) -> None:
    result = await bench.run("for i in 1 2 3; do echo out$i; echo err$i >&2; done")
    assert data(result)["output"] == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


async def test_output_is_shown_while_it_comes(bench: Bench) -> None:
    go = bench.root / "go"
    task = asyncio.create_task(bench.run("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"))
    deadline = time.monotonic() + 5
    while "first" not in bench.shown() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert bench.shown() == "first\n"
    go.touch()
    await task
    assert bench.shown() == "first\nsecond\n"


async def test_without_stdin_a_prompt_reads_the_end_of_file(bench: Bench) -> None:
    result = await bench.run('read x; echo "got <$x> $?"', timeout=5)
    assert data(result)["output"] == "got <> 1\n"


async def test_stdin_is_what_the_program_reads(bench: Bench) -> None:
    result = await bench.run("cat; echo end", stdin="日本\n")
    assert data(result)["output"] == "日本\nend\n"


async def test_a_terminal_is_there_when_asked_for(bench: Bench) -> None:
    assert (
        data(await bench.run("test -t 1 && echo terminal", terminal=True, timeout=10))["output"]
        == "terminal\n"
    )
    assert data(await bench.run("test -t 1 || echo none"))["output"] == "none\n"


async def test_what_was_printed_in_a_terminal_is_there_however_late_it_is_read(workspace: Path) -> None:
    process = await start(
        ["bash", "-c", "echo all of it"],
        cwd=workspace,
        env=dict(os.environ),
        stdin=None,
        terminal=True,
        reaped=False,
    )
    async with asyncio.timeout(20):
        while process.exit_code is None:
            await asyncio.sleep(0.01)
    shown: list[str] = []
    assert await process.finish(shown.append) == 0
    assert shown == ["all of it\n"]


async def test_a_time_out_ends_the_whole_tree(bench: Bench) -> None:
    started = time.monotonic()
    result = await bench.run(
        "setsid sleep 4711.1 & nohup setsid bash -c 'sleep 4711.1; true' & echo begun; sleep 4711.1",
        timeout=0.5,
    )
    assert time.monotonic() - started < 5
    assert not result.ok
    assert data(result)["exitCode"] == 124
    assert "begun" in result.text
    assert "0.5 s" in result.text
    assert await gone("4711.1")


async def test_what_a_command_leaves_running_ends_with_it(bench: Bench) -> None:
    result = await bench.run(
        "setsid sleep 4711.2 >/dev/null 2>&1 & (setsid sleep 4711.2 &) ; echo done", timeout=10
    )
    assert data(result)["output"] == "done\n"
    assert await gone("4711.2")


async def test_cancelling_stops_it_in_under_a_second(bench: Bench) -> None:
    task = asyncio.create_task(bench.run("echo go; trap '' TERM INT; setsid sleep 4711.3 & sleep 4711.3"))
    deadline = time.monotonic() + 5
    while "go" not in bench.shown() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1.2
    assert await gone("4711.3")


async def test_a_hundred_megabytes_are_counted_not_kept(bench: Bench) -> None:
    result = await bench.run(
        "echo start; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end", timeout=60
    )
    assert result.ok
    assert len(result.text) < 40_000
    assert data(result)["output"].startswith("start\n")
    assert data(result)["output"].endswith("end\n")
    assert "not kept" in result.text or "left out" in result.text
    assert len(bench.shown()) < 500_000


async def test_bytes_that_are_no_text_are_shown_safely(bench: Bench) -> None:
    result = await bench.run(r"printf '\377\376ok\000\001\n'")
    assert data(result)["output"] == "\ufffd\ufffdok\n"


async def test_terminal_escapes_never_reach_model_or_person(bench: Bench) -> None:
    result = await bench.run(
        r"printf '\033[31mred\033[0m \033]8;;http://x\033\\link\033]8;;\033\\ \033]52;c;aGk=\007\033[2K\rkept\n10%%\r20%%\n'"
    )
    for text in (result.text, bench.shown()):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "52;c" not in text
    assert data(result)["output"] == "kept\n20%\n"


async def test_keys_in_the_environment_are_not_handed_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-live-1", "MY_SECRET": "s3", "GITHUB_TOKEN": "t0", "DB_PASSWORD": "p4", "AWS_ACCESS_KEY_ID": "AK", "aws_secret": "x1",
        "HARMLESS": "ghp_" + "a1" * 20, "REMOTE": "https://bob:hunter2@h/", "DAIKU_X": "d", "HTTPS_PROXY": "http://u:pw@p:1",
    }  # fmt: skip
    for name, value in {**secrets, "RUST_LOG": "kept", "LC_TIME": "C"}.items():
        monkeypatch.setenv(name, value)
    result = await bench.run("env")
    assert "RUST_LOG=kept" in result.text
    assert "LC_TIME=C" in result.text
    for name, value in secrets.items():
        assert f"{name}=" not in result.text
        assert value not in result.text.split("\n")


@pytest.mark.parametrize("mode", ["off", "auto"])
async def test_variables_that_the_settings_name_reach_commands_that_were_asked_about_and_no_others(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    named = SandboxSettings(mode=mode, environment=("DB_URL", "MY_TOKEN", "PATH", "GIT_PAGER", "UNSET"))
    bench = Bench(workspace.resolve(), named)
    given = {
        "DB_URL": "postgres://app:pass-1@db/x",
        "MY_TOKEN": "t0ken",
        "OTHER_TOKEN": "0ther",
        "GIT_PAGER": "evil",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    output = data(await bench.run("env"))["output"]
    assert "DB_URL=postgres://app:pass-1@db/x\n" in output
    assert "MY_TOKEN=t0ken\n" in output
    assert "GIT_PAGER=cat\n" in output
    assert "OTHER_TOKEN" not in output
    assert "UNSET" not in output
    reading = prepare(RunArgs(command="ls"), bench.context)
    assert isinstance(reading, PreparedCommand)
    assert "MY_TOKEN" not in reading.env


async def test_programs_of_the_workspace_do_not_shadow_those_of_the_system(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (bench.root, bench.root / "bin"):
        folder.mkdir(exist_ok=True)
        for name in ("ls", "git", "bash", "cat"):
            (folder / name).write_text("#!/bin/sh\ntouch CANARY\n")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(bench.root)
    monkeypatch.setenv("PATH", f".::{bench.root}:{bench.root}/bin:bin:{os.environ['PATH']}")
    await bench.run("ls; git --version; cat /dev/null; bash -c true")
    assert not (bench.root / "CANARY").exists()


async def test_the_project_s_python_environment_is_active_but_not_for_what_only_reads(bench: Bench) -> None:
    venv = bench.root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    for name in ("python", "rg"):
        (venv / "bin" / name).write_text("#!/bin/sh\necho ours\n")
        (venv / "bin" / name).chmod(0o755)
    assert data(await bench.run("python x.py"))["output"] == "ours\n"
    assert "ours" not in data(await bench.run("rg x"))["output"]
    shown = await preview(RunArgs(command="python x.py && make && rg x"), bench.context)
    assert isinstance(shown, Preview)
    assert f"{venv}/bin/python, {venv}/bin/rg" in shown.text
    assert "make," not in shown.text


@pytest.mark.parametrize("name", ["ls", "git", "bash", "sh", "env", "Cat", "grep", "curl"])
async def test_a_python_environment_that_brings_a_tool_of_the_system_is_not_used_and_that_is_said(
    bench: Bench, name: str
) -> None:
    venv = bench.root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    for each in ("python", name):
        (venv / "bin" / each).write_text("#!/bin/sh\ntouch PLANTED\n")
        (venv / "bin" / each).chmod(0o755)
    await bench.run(f"touch a && {name.lower()} --version && git status; python --version")
    assert (bench.root / "a").exists()
    assert not (bench.root / "PLANTED").exists()
    assert [name in e.text for e in bench.events if isinstance(e, Notice)] == [True]


async def test_a_leading_cd_moves_the_start_and_never_outside(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    assert data(await bench.run("cd sub && pwd"))["output"] == f"{bench.root}/sub\n"
    for command in ("cd sub", "cd .. && pwd", "cd / && pwd", "cd nowhere && pwd"):
        result = await bench.run(command)
        assert not result.ok, command
        assert data(result)["exitCode"] != 0


async def test_a_command_that_hides_itself_is_not_run(bench: Bench) -> None:
    result = await bench.run("true" + " " * 5000 + "; touch C")
    assert not result.ok
    assert not (bench.root / "C").exists()


async def test_a_preview_shows_all_of_it_with_nothing_that_a_screen_obeys(bench: Bench) -> None:
    shown = await preview(RunArgs(command="printf 'a\u200d' && ls", stdin="x\x1b[2K"), bench.context)
    assert isinstance(shown, Preview)
    assert "printf" in shown.text
    assert "\x1b" not in shown.text
    assert "\\u001b" in shown.text


async def test_a_background_command_is_looked_at_and_ended(bench: Bench) -> None:
    started = await bench.run("echo ready; sleep 4711.4", background=True)
    name = data(started)["id"]
    assert name == "echo-ready"
    looked = await output(OutputArgs(id=name, wait=5), bench.context, bench.jobs)
    assert "ready" in looked.text
    assert "still running" in looked.text
    ended = await kill(KillArgs(id=name), bench.context, bench.jobs)
    assert ended.ok
    assert await gone("4711.4")
    again = await output(OutputArgs(id=name), bench.context, bench.jobs)
    assert data(again)["running"] is False


async def test_an_unknown_background_command_is_told_the_known_ones(bench: Bench) -> None:
    await bench.run("sleep 4711.5", background=True)
    result = await output(OutputArgs(id="nope"), bench.context, bench.jobs)
    assert not result.ok
    assert "sleep-4711" in result.text


async def test_when_the_server_dies_nothing_of_it_lives_on(bench: Bench, tmp_path: Path) -> None:
    mode = bench.context.config.sandbox.mode
    script = tmp_path / "server.py"
    script.write_text(
        f"""
import asyncio, sys
from pathlib import Path
from tests.tools.shell.test_shell import Bench, SandboxSettings
async def main():
    bench = Bench(Path({str(bench.root)!r}), SandboxSettings(mode={mode!r}))
    await bench.run("touch begun; setsid sleep 4711.6 & sleep 4711.6")
asyncio.run(main())
"""
    )
    root = Path(__file__).resolve().parents[3]
    env = {**os.environ, "PYTHONPATH": f"{root / 'server'}:{root}"}
    import sys

    server = await asyncio.create_subprocess_exec(sys.executable, str(script), env=env)
    deadline = time.monotonic() + 20
    while not (bench.root / "begun").exists() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert alive("4711.6")
    server.kill()
    await server.wait()
    assert await gone("4711.6", within=3)
