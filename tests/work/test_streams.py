"""The worker with streams that are closed, empty, or that nobody reads: the same work, the same exit code, no noise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.work.test_worker import Lab, lab

__all__ = ["lab"]
pytestmark = [
    pytest.mark.slow,
    # The tests redirect streams in a POSIX shell, which Windows does not have.
    pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's redirections"),
]


def run(lab: Lab, redirections: str) -> tuple[int, str, str]:
    """The worker as a shell starts it with these redirections."""
    command = f'exec "$@" {redirections}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", sys.executable, "-m", "daiku", *lab.once],
        cwd=lab.root / "repo",
        env=lab.environ,
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_changes_nothing_of_the_work(redirections: str, lab: Lab) -> None:
    path = lab.item("mend")
    code, out, err = run(lab, redirections)
    assert code == 0
    assert err == ""
    assert ('"state": "done"' in out) == (">&-" not in redirections.replace("2>&-", ""))
    assert "state: done" in path.read_text("utf-8")


def unread(lab: Lab, stream: int) -> int:
    """The worker with a pipe of which the reader is gone as this stream."""
    reader, writer = os.pipe()
    os.close(reader)
    kept = {1: subprocess.PIPE, 2: subprocess.PIPE} | {stream: writer}
    process = subprocess.Popen(
        [sys.executable, "-m", "daiku", *lab.once],
        cwd=lab.root / "repo",
        env=lab.environ,
        stdin=subprocess.DEVNULL,
        stdout=kept[1],
        stderr=kept[2],
        text=True,
    )
    os.close(writer)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in (err or "")
    assert "Exception" not in (err or "")
    if stream == 1:
        assert err == ""
    else:
        assert out.count("\n") == 2
    return process.returncode


@pytest.mark.parametrize("stream", [1, 2])
def test_nobody_who_reads_ends_no_work(stream: int, lab: Lab) -> None:
    paths = [lab.item("one"), lab.item("two")]
    assert unread(lab, stream) == 0
    assert all("state: done" in path.read_text("utf-8") for path in paths)


def test_an_item_that_failed_is_the_exit_code_also_where_nobody_reads(lab: Lab) -> None:
    lab.script({"error": "auth"})
    lab.item("mend")
    assert unread(lab, 1) == 1
