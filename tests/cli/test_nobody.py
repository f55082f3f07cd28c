"""Nobody waits for nobody: every command, approval mode and kind of standard input ends soon, with the right code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.main import main
from daiku.run.request import RunRequest
from tests.cli.conftest import Done, call
from tests.conftest import ROOT
from tests.runs.playing import Watch, make_app

pytestmark = [
    pytest.mark.slow,
    # The tests replace file descriptors of a process, which Windows cannot do.
    pytest.mark.skipif(sys.platform == "win32", reason="descriptors of a process are swapped"),
]
SECONDS = 10
Line = dict[str, Any]
PLANNER, CODER, RUNNER = "now you plan", "now you write code", "now you run commands"
STDINS = ("devnull", "empty pipe", "piped text", "file")
APPROVALS = ("", "none", "edits", "all")
MADE = call("shell/run", command="touch made")
RULES = call("files/write", path="AGENTS.md", content="Obey.\n")
ASK = call("user/ask", question="Which one?", choices=["a", "b"])
FREE = call("shell/run", command="touch free", sandbox=False)


def planned(*checks: str) -> list[Line]:
    step = {"name": "Make it", "acceptance": list(checks)}
    return [
        {"agent": PLANNER, "calls": [call("plan/propose", goal="g", steps=[step])]},
        {"agent": PLANNER, "text": "That is the plan."},
        {"agent": "now you research", "text": '{"queries": [], "ask_user": ""}'},
        {"agent": RUNNER, "text": '{"commands": []}'},
        {"agent": "now you report", "text": '{"text": "Done.", "claims": []}'},
    ]


CODED = [
    {"agent": CODER, "calls": [RULES, call("files/write", path="there.txt", content="x\n")]},
    {"agent": CODER, "text": "Wrote there.txt."},
]
NEEDY: dict[str, tuple[tuple[str, ...], list[Line]]] = {
    "run": (("run", "do it"), [{"calls": [MADE, RULES, ASK, FREE]}, {"text": "Done."}]),
    "run json": (("run", "do it", "--json"), [{"calls": [MADE, RULES, ASK, FREE]}, {"text": "Done."}]),
    "code": (("code", "do it"), [{"calls": [RULES]}, {"text": "No change: nobody was there."}]),
    "exec": (("exec", "do it"), [{"calls": [MADE, FREE]}, {"text": '{"commands": []}'}]),
    "plan": (
        ("plan", "do it"),
        [
            {"calls": [ASK]},
            {"calls": [call("plan/propose", goal="g", steps=[{"name": "a"}])]},
            {"text": "So."},
        ],
    ),
    "work": (("plan", "do it", "--work"), [*planned("test -s there.txt"), *CODED]),
}
"""What each command has to say of a model that needs a person, whatever is granted beforehand."""


@contextmanager
def standard_input(kind: str, folder: Path, text: bytes = b"y\ny\na\nyyyy\n") -> Generator[None]:
    """The process's own descriptor 0, as `kind`."""
    kept, before = os.dup(0), sys.stdin
    (folder / "typed").write_bytes(text)
    if kind == "devnull":
        source = os.open(os.devnull, os.O_RDONLY)
    elif kind == "file":
        source = os.open(folder / "typed", os.O_RDONLY)
    else:
        source, sink = os.pipe()
        if kind == "piped text":
            os.write(sink, text)
        os.close(sink)
    os.dup2(source, 0)
    os.close(source)
    with open(0, encoding="utf-8", closefd=False) as stream:  # a descriptor
        sys.stdin = stream
        try:
            yield
        finally:
            sys.stdin = before
            os.dup2(kept, 0)
            os.close(kept)


@contextmanager
def within(seconds: int) -> Generator[None]:
    """Raises TimeoutError where what is inside does not end."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def ended(kind: str, folder: Path, args: tuple[str, ...], approve: str) -> int:
    """The exit code of a command."""
    options = ("--approve", approve) if approve else ()
    with standard_input(kind, folder), within(SECONDS):
        return main([*args, "--model", "scripted/play.jsonl", *options])


def test_work_that_nobody_could_approve_is_not_called_rejected(
    script: Callable[..., str], daiku: Callable[..., Done], workspace: Path
) -> None:
    (workspace / "plan.md").write_text("# Note\n- [ ] Step 1: Write there.txt\n")
    plan = daiku("plan", "import", "plan.md").out.strip()
    done = daiku("plan", "work", plan, "--model", script(*CODED, CODED[-1], *planned()[2:]))
    assert done.code == 4
    assert done.out.startswith("The work stopped, because approval was required")


@pytest.mark.parametrize("kind", STDINS)
@pytest.mark.parametrize("approve", APPROVALS)
@pytest.mark.parametrize("command", NEEDY)
def test_what_needs_a_person_is_refused_at_once_and_told_by_the_exit_code(
    script: Callable[..., str], workspace: Path, command: str, approve: str, kind: str
) -> None:
    args, lines = NEEDY[command]
    script(*lines)
    assert ended(kind, workspace, args, approve) == 4
    assert not (workspace / "AGENTS.md").exists()
    assert not (workspace / "free").exists()
    assert (workspace / "made").exists() is (approve == "all" and MADE in lines[0].get("calls", []))


@pytest.mark.parametrize("kind", STDINS)
@pytest.mark.parametrize("approve", APPROVALS)
@pytest.mark.parametrize("command", ["run", "code", "exec", "plan", "chat"])
def test_what_needs_nobody_ends_well(
    script: Callable[..., str], workspace: Path, command: str, approve: str, kind: str
) -> None:
    text = {"exec": '{"commands": []}', "code": "No change: all is there."}.get(command, "Well.")
    propose = call("plan/propose", goal="g", steps=[{"name": "a"}])
    script(*([{"calls": [propose]}] if command == "plan" else []), *[{"text": text}] * 5)
    requests = {"chat": (), "plan": ("do it",)}
    args = (command, *requests.get(command, ("Is it there?",)))
    assert ended(kind, workspace, args, approve) == 0


@pytest.mark.parametrize("kind", STDINS)
@pytest.mark.parametrize("approve", APPROVALS)
def test_lines_of_a_pipe_are_requests_of_a_conversation_and_never_answers(
    script: Callable[..., str], workspace: Path, capsys: pytest.CaptureFixture[str], approve: str, kind: str
) -> None:
    script(*[{"calls": [FREE]}, {"text": "Done with {{user}}."}] * 4)
    code = ended(kind, workspace, ("chat",), approve)
    spoke = kind in ("piped text", "file")
    assert code == (4 if spoke else 0)
    assert capsys.readouterr().out.count("Done with") == (4 if spoke else 0)
    assert not (workspace / "free").exists()


@pytest.mark.parametrize("kind", STDINS)
@pytest.mark.parametrize("approve", APPROVALS)
def test_a_question_that_was_left_open_is_refused_when_nobody_resumes_it(
    workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch, approve: str, kind: str
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "play.jsonl").write_text(
        json.dumps({"calls": [MADE, RULES]}) + "\n" + json.dumps({"text": "Done."}) + "\n"
    )
    run = asyncio.run(left_asking(workspace, daiku_home))
    assert ended(kind, workspace, ("resume", run), approve) == 4
    assert (workspace / "made").exists() is (approve == "all")
    assert not (workspace / "AGENTS.md").exists()


async def left_asking(workspace: Path, home: Path) -> str:
    """A run that was let go of while it asked for an approval; its id."""
    app = make_app(workspace.parent, {"calls": [MADE, RULES]}, project=workspace, home=home)
    watch = Watch()
    model = f"scripted/{workspace / 'play.jsonl'}"
    task = asyncio.create_task(app.runs.run(RunRequest("do it", model=model), watch))
    asked = await watch.until("approval_asked")
    await app.runs.stop_all()
    await task
    await app.aclose()
    return asked.run


@pytest.mark.parametrize("kind", STDINS)
@pytest.mark.parametrize("approve", ["edits", "all"])
def test_a_check_that_nothing_here_can_show_is_not_shown_and_no_question(
    script: Callable[..., str], workspace: Path, approve: str, kind: str
) -> None:
    written = call("files/write", path="x.py", content="x = 1\n")
    step = {"name": "Make it", "acceptance": ["diagnostics: x.py"]}
    script(
        {"calls": [call("plan/propose", goal="g", steps=[step])]},
        {"calls": [written, call("plan/approve")]},
        {"calls": [call("plan/update_step", step_id="1", status="in_progress")]},
        {"calls": [call("plan/update_step", step_id="1", status="completed")]},
        {"text": "All done: the checks pass."},
    )
    # With `edits` approving the plan is what nobody could do; with `all` the step stays open.
    assert ended(kind, workspace, ("run", "do it"), approve) == (4 if approve == "edits" else 1)


@pytest.mark.parametrize("stdin", ["</dev/null", "<&-", "< asked.txt", "< <(printf yyyyyyyy)", "< <(:)"])
@pytest.mark.parametrize("approve", ["edits", "all"])
@pytest.mark.parametrize("command", ["run 'do it'", "run --json 'do it'", "chat"])
def test_a_real_process_ends_too(
    command: str, approve: str, stdin: str, workspace: Path, daiku_home: Path
) -> None:
    lines = [{"calls": [RULES, ASK, FREE]}, {"text": "Done."}]
    (workspace / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (workspace / "asked.txt").write_text("do it\n")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "server"),
        "DAIKU_HOME": str(daiku_home),
        "DAIKU_LLM__MODEL": "scripted/play.jsonl",
        "LC_ALL": "C.UTF-8",
    }
    line = f'"{sys.executable}" -m daiku {command} --approve {approve} {stdin}'
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=workspace,
        env=environ,
        capture_output=True,
        check=False,
        timeout=4 * SECONDS,
    )
    silent = command == "chat" and stdin in ("</dev/null", "<&-", "< <(:)")
    assert done.returncode == (0 if silent else 4), done.stderr.decode()
    assert not (workspace / "AGENTS.md").exists()


@pytest.mark.parametrize("kind", ["devnull", "file", "empty pipe", "piped text"])
def test_reading_keys_and_lines_waits_for_nothing_that_cannot_come(kind: str, tmp_path: Path) -> None:
    async def typed() -> list[str | None]:
        return [await keyboard.read_line(), await keyboard.read_key(), await keyboard.read_line()]

    with standard_input(kind, tmp_path, b"one\n"), within(SECONDS):
        assert asyncio.run(typed()) == (
            ["one", "", None] if kind in ("file", "piped text") else [None, "", None]
        )
