"""A person at a real terminal (a pty): streaming, approvals, questions, Ctrl-C, the conversation."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

# Windows has no pseudoterminals.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there are no ptys")]
LIMIT = 30.0
CHANGE = {"text": "Now.", "calls": [{"tool": "shell/run", "args": {"command": "touch made"}}]}
DONE = {"text": "# Finished\nAll **done**."}


class Screen:
    """The command in a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self.text = ""
        self._fd = fd
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, words: str) -> None:
        """Read until `words` come after what was waited for before."""
        end = time.monotonic() + LIMIT
        while words not in self.text[self._seen :]:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {words!r} in {self.text[self._seen :]!r}"
            assert self._read(), f"ended without {words!r}: {self.text[self._seen :]!r}"
        self._seen += self.text[self._seen :].index(words) + len(words)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait(LIMIT)

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += self._decoder.decode(data)
        return bool(data)


Open = Callable[..., Any]


@pytest.fixture
def at_terminal(workspace: Path, daiku_home: Path) -> Open:
    @contextmanager
    def start(*args: str, lines: list[dict[str, Any]], **environ: str) -> Generator[Screen]:
        (workspace / "play.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
        ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "server"),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "DAIKU_HOME": str(daiku_home),
            "DAIKU_LLM__MODEL": "scripted/play.jsonl",
            **environ,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "daiku", *args],
            cwd=workspace,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            yield Screen(process, ours)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(ours)

    return start


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_yes_runs_the_command(at_terminal: Open, workspace: Path) -> None:
    with at_terminal("run", "make it", lines=[CHANGE, DONE]) as screen:
        screen.until("Run this command?")
        screen.until("touch made")
        screen.until("[y]")
        screen.type("y")
        screen.until("Finished")
        assert screen.end() == 0
    assert (workspace / "made").exists()
    assert "\x1b[1m# Finished\x1b[0m" in screen.text
    assert "All \x1b[1mdone\x1b[0m." in screen.text


@pytest.mark.parametrize("key", ["n", "\x04", "ｎ"])
def test_no_is_told_to_the_model(at_terminal: Open, workspace: Path, key: str) -> None:
    with at_terminal("run", "make it", lines=[CHANGE, DONE]) as screen:
        screen.until("[y]")
        screen.type(key)
        screen.until("rejected")
        assert screen.end() == 0
    assert not (workspace / "made").exists()


def test_a_no_may_say_why(at_terminal: Open, daiku_home: Path) -> None:
    with at_terminal("run", "make it", lines=[CHANGE, DONE]) as screen:
        screen.until("[y]")
        screen.type("f")
        screen.until("instead?")
        screen.type("名前を変えて\n")
        assert screen.end() == 0
    assert "They said: 名前を変えて" in plain(screen.text)


def test_control_characters_of_a_command_are_shown_not_obeyed(at_terminal: Open) -> None:
    trick = {"text": "", "calls": [{"tool": "shell/run", "args": {"command": "touch x\x1b[2K\x1b[1Gls"}}]}
    with at_terminal("run", "make it", lines=[trick, DONE]) as screen:
        screen.until("touch x\\x1b[2K\\x1b[1Gls")
        assert screen.end() == 5  # the command is refused, and nothing else was made
    assert "touch x\x1b" not in screen.text


def test_a_question_is_answered_by_number(at_terminal: Open) -> None:
    ask = {
        "text": "",
        "calls": [{"tool": "user/ask", "args": {"question": "Which one?", "choices": ["red", "blue"]}}],
    }
    with at_terminal("run", "paint", lines=[ask, DONE]) as screen:
        screen.until("Which one?")
        screen.until("2. blue")
        screen.until("text: ")
        screen.type("2\n")
        screen.until("blue")
        assert screen.end() == 0


def test_ctrl_c_cancels_and_the_terminal_is_as_before(at_terminal: Open) -> None:
    with at_terminal("run", "make it", lines=[CHANGE, DONE]) as screen:
        screen.until("[y]")
        screen.process.send_signal(signal.SIGINT)
        assert screen.end() == 130
    assert "Stopp" in screen.text


def test_ctrl_c_ends_a_command_under_way(at_terminal: Open) -> None:
    slow = {"text": "", "calls": [{"tool": "shell/run", "args": {"command": "echo begun; sleep 60"}}]}
    with at_terminal("run", "wait", "--approve", "all", lines=[slow, DONE]) as screen:
        screen.until("│ begun")
        screen.process.send_signal(signal.SIGINT)
        assert screen.end() == 130


def test_no_colour_where_none_is_wanted(at_terminal: Open) -> None:
    with at_terminal("run", "hi", lines=[DONE], NO_COLOR="1") as screen:
        assert screen.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*m", screen.text)
    with at_terminal("run", "hi", lines=[DONE], TERM="dumb") as screen:
        assert screen.end() == 0
    assert "\x1b" not in screen.text


def test_a_conversation_keeps_its_context_and_takes_commands(at_terminal: Open, workspace: Path) -> None:
    lines = [{"text": "First answer."}, CHANGE, {"text": "Made it."}]
    with at_terminal("chat", lines=lines) as screen:
        screen.until("/help")
        screen.until("› ")
        screen.type("hello\n")
        screen.until("First answer.")
        screen.until("› ")
        screen.type("/mode plan\n/mode act\n/nonsense\n")
        screen.until("Mode: plan")
        screen.until("Mode: act")
        screen.until("There is no /nonsense")
        screen.until("› ")
        screen.type("now make it\n")
        screen.until("[y]")
        screen.type("y")
        screen.until("Made it.")
        screen.until("› ")
        screen.type("/sessions\n")
        screen.until("hello")
        screen.until("› ")
        screen.type("\x04")
        screen.until("Bye.")
        assert screen.end() == 0
    assert (workspace / "made").exists()


def test_what_is_typed_while_it_works_is_told_to_the_model(at_terminal: Open, daiku_home: Path) -> None:
    slow = {"text": "", "calls": [{"tool": "shell/run", "args": {"command": "sleep 2; touch slept"}}]}
    with at_terminal("chat", "--approve", "all", lines=[slow, {"text": "Heard."}]) as screen:
        screen.until("› ")
        screen.type("begin\n")
        screen.until("Run sleep")
        screen.type("青くして\n")
        screen.until("told to the model")
        screen.until("Heard.")
        screen.until("› ")
        screen.type("\x04")
        assert screen.end() == 0
    with at_terminal("sessions", "list", lines=[]) as screen:
        assert screen.end() == 0
    session = screen.text.split()[0]
    with at_terminal("sessions", "show", session, lines=[]) as screen:
        assert screen.end() == 0
    assert "> 青くして" in plain(screen.text)


def test_stop_ends_the_run_but_not_the_conversation(at_terminal: Open) -> None:
    slow = {"text": "", "calls": [{"tool": "shell/run", "args": {"command": "sleep 60; touch slept"}}]}
    with at_terminal("chat", "--approve", "all", lines=[slow, {"text": "Here again."}]) as screen:
        screen.until("› ")
        screen.type("begin\n")
        screen.until("Run sleep")
        screen.type("/stop\n")
        screen.until("Stopped.")
        screen.until("› ")
        screen.type("and now?\n")
        screen.until("Here again.")
        screen.until("› ")
        screen.type("/quit\n")
        assert screen.end() == 0


def test_lines_typed_before_are_remembered(at_terminal: Open, daiku_home: Path) -> None:
    with at_terminal("chat", lines=[{"text": "One."}]) as screen:
        screen.until("› ")
        screen.type("remember me\n")
        screen.until("One.")
        screen.until("› ")
        screen.type("/quit\n")
        assert screen.end() == 0
    history = daiku_home / "chat-history"
    assert "remember me" in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o077 == 0


def test_a_reader_that_goes_away_stops_the_run(workspace: Path, daiku_home: Path) -> None:
    lines = [{"text": "x " * 200, "delay_ms": 20}, DONE]
    (workspace / "play.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "DAIKU_LLM__MODEL": "scripted/play.jsonl"}
    with subprocess.Popen(
        [sys.executable, "-m", "daiku", "run", "--json", "talk"],
        cwd=workspace,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(LIMIT) == 130
    assert len(said.splitlines()) == 1, said


def edit_twice(workspace: Path) -> dict[str, Any]:
    """A reply that changes the file in two places far apart."""
    (workspace / "a.txt").write_text("".join(f"line {i}\n" for i in range(1, 21)))
    edits = [{"search": "line 2\n", "replace": "two\n"}, {"search": "line 18\n", "replace": "eighteen\n"}]
    return {"calls": [{"tool": "files/edit", "args": {"path": "a.txt", "edits": edits}}]}


def test_changes_of_an_edit_are_picked_one_by_one(at_terminal: Open, workspace: Path) -> None:
    with at_terminal("run", "change it", lines=[edit_twice(workspace), DONE]) as screen:
        screen.until("[p] pick")
        screen.type("p")
        screen.until("Change 1 of 2")
        screen.until("+two")
        screen.until("[q] back")
        screen.type("y")
        screen.until("Change 2 of 2")
        screen.until("+eighteen")
        screen.until("[q] back")
        screen.type("n")
        screen.until("1 of 2 changes")
        screen.until("the others?")
        screen.type("18 stays\n")
        screen.until("Finished")
        assert screen.end() == 0
    text = (workspace / "a.txt").read_text()
    assert "two\n" in text
    assert "line 18\n" in text


def test_picking_can_be_left_and_an_edit_of_which_nothing_is_picked_is_rejected(
    at_terminal: Open, workspace: Path
) -> None:
    with at_terminal("run", "change it", lines=[edit_twice(workspace), DONE]) as screen:
        screen.until("[p] pick")
        screen.type("p")
        screen.until("[q] back")
        screen.type("y")
        screen.until("Change 2 of 2")
        screen.until("[q] back")
        screen.type("k")
        screen.until("Change 1 of 2")
        screen.until("[q] back")
        screen.type("q")
        screen.until("[p] pick")
        screen.type("p")
        screen.until("[q] back")
        screen.type("d")
        screen.until("the others?")
        screen.type("\n")
        screen.until("rejected")
        assert screen.end() == 0
    assert "two" not in (workspace / "a.txt").read_text()
