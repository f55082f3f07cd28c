"""Starting is quick: nothing is loaded that the command at hand does not need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from daiku.domain.events import ApprovalKind
from daiku.domain.playbook import DeltaStatus, DeltaType, Doubt, Origin, Verdict, Why
from daiku.domain.runs import ClientApprovals, RunStatus
from daiku.domain.servers import ServerStatus
from daiku.domain.sessions import SessionStatus
from daiku.domain.work.patches import FileKind
from daiku.eval.compare import Outcome, Used
from daiku.fronts.cli.commands.playbook.looks import TAUGHT
from daiku.fronts.cli.display.evaluations import HEADS
from daiku.fronts.cli.main import COMMANDS
from daiku.playbook.files import ReviewReason
from daiku.run.recorded.compare import UncomparedKind
from daiku.texts.text import sentences
from tests.cli.conftest import Daiku
from tests.conftest import ROOT


def python(code: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loaded", "never"),
    [
        (
            "daiku.__main__, daiku.fronts.lsp.bootstrap",
            ("click", "pydantic", "pygls", "sqlite3", "daiku.fronts.cli.main", "daiku.app"),
        ),
        (
            "daiku.fronts.cli.main",
            ("pygls", "daiku.app", "sqlite3", "jinja2", "json_repair", "httpx", "openai", "anthropic"),
        ),
        ("daiku.fronts.cli.commands.run", ("pygls", "json_repair", "openai", "anthropic", "mcp", "readline")),
    ],
)
def test_what_is_not_needed_is_not_loaded(loaded: str, never: tuple[str, ...]) -> None:
    assert python(f"import sys, {loaded}; print([m for m in {never!r} if m in sys.modules])") == "[]"


@pytest.mark.slow
def test_the_module_is_the_command() -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "daiku"]
    done = subprocess.run([*command, "--version"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(
        [*command, "lsp", "--help"], env=environ, capture_output=True, text=True, check=False
    )
    assert "--tcp HOST:PORT" in done.stdout
    done = subprocess.run([*command, "nonsense"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_every_text_that_is_said_is_there_and_every_text_is_said() -> None:
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "server" / "daiku" / "fronts" / "cli").rglob("*.py")
    )
    said = set(re.findall(r"""say\(\s*["']([\w.]+)["']""", source))
    made = {f"help.{name}" for name in COMMANDS} | {f"approve.{kind}" for kind in get_args(ApprovalKind)}
    made |= {f"no_approval.{mode}" for mode in get_args(ClientApprovals) if mode != "ask"}
    made |= {f"no_approval.all.{why}" for why in ("untrusted", "foreign", "mcp")}
    made |= {f"mcp.{status}" for status in get_args(ServerStatus)}
    made |= {f"change.{kind}" for kind in get_args(FileKind) if kind != "edit"}
    made |= {f"eval.outcome.{outcome}" for outcome in get_args(Outcome)}
    made |= {f"status.{status}" for status in (*get_args(RunStatus), *get_args(SessionStatus))}
    made |= {f"eval.used.{what}" for what in get_args(Used)} | {f"eval.head.{name}" for name in HEADS}
    made |= {f"lessons.{what}{one}" for what in ("told", "used") for one in ("", "_one")}
    made |= {f"playbook.type.{kind}" for kind in get_args(DeltaType)}
    made |= {f"playbook.status.{status}" for status in get_args(DeltaStatus)}
    made |= {f"playbook.decided.{status}" for status in ("applied", "rejected")}
    made |= {f"playbook.verdict.{verdict}" for verdict in get_args(Verdict)}
    made |= {f"playbook.origin.{origin}" for origin in get_args(Origin)}
    made |= {f"playbook.taught.{why}" for why in TAUGHT}
    made |= {f"playbook.because.{why}" for why in get_args(Why)}
    made |= {f"playbook.doubt.{doubt}" for doubt in get_args(Doubt)}
    made |= {f"playbook.import.{reason}" for reason in get_args(ReviewReason)}
    made |= {f"replay.{kept}" for kept in get_args(UncomparedKind)}
    assert said | made == {
        key.removeprefix("terminal.") for key in sentences("en") if key.startswith("terminal.")
    }


def test_a_chat_whose_history_cannot_be_kept_ends_well(
    daiku: Daiku, daiku_home: Path, script: Callable[..., str]
) -> None:
    """A23.9."""
    (daiku_home / "chat-history").mkdir(parents=True)
    done = daiku("chat", "--model", script({"text": "One."}), stdin=b"hello\n/quit\n")
    assert (done.code, done.out.strip()) == (0, "One.")
    assert "unexpected" not in done.err
