"""A small project under git with a bug, a run on record that mended it, and trials of that run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daiku.app import build
from daiku.domain.config import SandboxSettings
from daiku.domain.held import Lesson
from daiku.domain.runs import RunLimits
from daiku.domain.trials import Arm, Case, Trial
from daiku.llm.table import LLMSettings
from daiku.runs import RunRequest
from daiku.sdk.trials.cases import cases_of
from daiku.sdk.trials.trial import Trying, try_case
from daiku.settings.config import Config
from daiku.trace.stores import open_stores
from daiku.workspace.disk import DiskWorkspace
from tests.conftest import ROOT
from tests.runs.playing import Watch

CHECK = "python3 -B check.py"
ASKED = "mend add in calc.py"
WRONG = "def add(a, b):\n    return a - b\n"


def call(command: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "shell/run", "args": {"command": command, **more}}]}


def edits(path: str, search: str, replace: str) -> dict[str, Any]:
    change = {"search": search, "replace": replace}
    return {"calls": [{"tool": "files/edit", "args": {"path": path, "edits": [change]}}]}


MENDS = edits("calc.py", "a - b", "a + b")


@dataclass(frozen=True)
class Project:
    """`folder` is the person's, `home` Daiku's."""

    base: Path
    environ: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.base / "person" / "calc"

    @property
    def home(self) -> Path:
        return self.base / "home"

    def git(self, *argv: str) -> str:
        done = subprocess.run(
            ["git", *argv], cwd=self.folder, env=self.environ, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        for name, content in files.items():
            place = self.folder / name.replace("__", ".")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, "utf-8")

    def commit(self, said: str = "more") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", said)
        return self.git("rev-parse", "HEAD")

    def config(self, *lines: dict[str, Any], **settings: Any) -> Config:
        script = self.base / "script.jsonl"
        script.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
        usual = Config(llm=LLMSettings(model=f"scripted/{script}"), sandbox=SandboxSettings(mode="off"))
        return usual.model_copy(update=settings)

    def record(
        self,
        *lines: dict[str, Any],
        asked: str = ASKED,
        session: str | None = None,
        limits: RunLimits | None = None,
        stopped: bool = False,
        **settings: Any,
    ) -> Watch:
        """A run of the person's, whose model plays `lines`; `session`: the one that it goes on; `stopped`: by the person,
        after its first call."""
        watch = Watch()

        async def work() -> None:
            workspace = DiskWorkspace((self.folder,))
            app = build(self.config(*lines, **settings), workspace=workspace, home=self.home)
            try:
                request = RunRequest(asked, session, approvals="all", limits=limits)
                run = asyncio.create_task(app.runs.run(request, watch))
                if stopped:
                    answered = await watch.until("tool_response")
                    await app.runs.cancel(answered.run)
                await run
            finally:
                await app.aclose()

        asyncio.run(work())
        return watch

    def mended(self) -> None:
        """The run that every case here is made of: the check failed, add was mended, and it passed."""
        self.record(call(CHECK), MENDS, call(CHECK), {"text": "Done."})

    def cases(self) -> tuple[Case, ...]:
        async def work() -> tuple[Case, ...]:
            stores = open_stores(Config().storage.place(self.home), str)
            try:
                return await cases_of(stores.journal, self.home, (self.folder,))
            finally:
                stores.close()

        return asyncio.run(work())

    def case(self) -> Case:
        (found,) = self.cases()
        return found

    def tried(
        self,
        case: Case,
        *lines: dict[str, Any],
        lessons: Sequence[Lesson] = (),
        arm: Arm = "with",
        nth: int = 1,
        max_cost: float = 0.0,
        **settings: Any,
    ) -> Trial:
        """What comes of trying the case with a model that plays `lines`."""
        trying = Trying(self.config(*lines, **settings), self.home)
        return asyncio.run(try_case(case, lessons, trying, arm=arm, nth=nth, max_cost=max_cost))


@contextmanager
def project() -> Generator[Project]:
    """It lies where the sandbox hides nothing by itself: not below the system's temporary folder."""
    above = next(f for f in (ROOT.parent, Path.home()) if os.access(f, os.W_OK))
    base = Path(tempfile.mkdtemp(prefix=".daiku-trials-", dir=above)).resolve()
    environ = {
        **os.environ,
        "HOME": str(base),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ann@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    made = Project(base, environ)
    try:
        made.folder.mkdir(parents=True)
        made.git("init", "--quiet", "--initial-branch=main")
        made.write(calc__py=WRONG, check__py="from calc import add\nassert add(1, 2) == 3\n")
        made.commit("A calculator")
        yield made
    finally:
        shutil.rmtree(base, ignore_errors=True)
