"""SkillOpt-Sleep (`skillopt` of PyPI), night by night: sessions as it finds them, its own harvest, gate and adoption."""

# Runs in an environment of its own; what it imports is not here.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from bridge import Answer, Bridge
from skillopt_sleep import cycle, state
from skillopt_sleep.backend import CliBackend
from skillopt_sleep.config import load_config
from skillopt_sleep.memory import current_learned_lines, ensure_skill_scaffold, set_learned

BEGAN = 1_767_225_600
"""When the first session begins; a session is ten minutes, and a night is when it is asked for."""
SESSION = 600


class Backend(CliBackend):
    """In the place of the `claude` command: its one call to a model, answered by the other side. All prompts, their cache
    and what is read in replies are those of its own `CliBackend`."""

    name = "stand-in"

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    def _call(self, prompt: str, *, max_tokens: int = 1024) -> str:
        return self._bridge.model(prompt)


def lines(file: Path) -> list[str]:
    return current_learned_lines(file.read_text(encoding="utf-8")) if file.exists() else []


def main() -> None:
    bridge = Bridge()
    cycle.get_backend = lambda *_words, **_names: Backend(bridge)
    current: dict[str, Any] = {}

    def begin(asked: Answer) -> Answer:
        # Its nights are processes of their own: what they add to the empty state of a new project stays in the process.
        state.DEFAULT_STATE.update(last_harvest={}, history=[], task_archive=[])
        # Which tasks are held out depends on the name of the project: it is the same whenever a world is run.
        home = Path(asked["name"])
        shutil.rmtree(home, ignore_errors=True)
        project, sessions = home / "project", home / "claude" / "projects" / "world"
        project.mkdir(parents=True)
        sessions.mkdir(parents=True)
        settings = {
            "claude_home": str(home / "claude"),
            "invoked_project": str(project),
            "backend": "stand-in",
            "auto_adopt": True,
            **asked["settings"],
        }
        config = load_config(**settings)
        current.update(config=config, project=project, sessions=sessions, now=BEGAN)
        return {}

    def session(asked: Answer) -> Answer:
        def at(seconds: int) -> str:
            return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(current["now"] + seconds))

        about = {"cwd": str(current["project"]), "sessionId": asked["name"]}
        tools = [
            {"type": "tool_use", "name": "Bash", "input": {"command": each}} for each in asked["actions"]
        ]
        said = [*tools, {"type": "text", "text": asked["final"]}]
        records = (
            {"type": "user", "message": {"role": "user", "content": asked["question"]}, "timestamp": at(0)},
            {
                "type": "assistant",
                "message": {"role": "assistant", "content": said},
                "timestamp": at(SESSION),
            },
        )
        file = current["sessions"] / f"{asked['name']}.jsonl"
        file.write_text("".join(json.dumps(each | about) + "\n" for each in records), encoding="utf-8")
        current["now"] += SESSION
        return {}

    def night(_asked: Answer) -> Answer:
        current["now"] += SESSION
        config, project = current["config"], current["project"]
        done = cycle.run_sleep_cycle(config, clock=current["now"])
        current["now"] += SESSION
        report = done.report
        return {
            "lines": lines(Path(config.managed_skill_path())) + lines(project / "CLAUDE.md"),
            "tasks": report.n_tasks,
            "accepted": report.accepted,
            "before": report.baseline_score,
            "after": report.candidate_score,
        }

    def put_in(asked: Answer) -> Answer:
        skill = Path(current["config"].managed_skill_path())
        text = skill.read_text(encoding="utf-8") if skill.exists() else ""
        text = text or ensure_skill_scaffold("", name="learned", description="Put in from outside.")
        skill.parent.mkdir(parents=True, exist_ok=True)
        skill.write_text(set_learned(text, [*current_learned_lines(text), *asked["texts"]]), encoding="utf-8")
        return {}

    bridge.serve({"begin": begin, "session": session, "night": night, "put_in": put_in})


main()
