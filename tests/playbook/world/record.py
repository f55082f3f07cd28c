"""The session of an attempt as the journal of a run holds it, made of its steps. `test_record.py` holds it against real runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    AgentEnd,
    AgentStart,
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    MessageEvent,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Lesson
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileStat
from daiku.run.rules.state.fold import fold
from daiku.run.rules.verdict import end_events
from daiku.texts.text import Text
from tests.playbook.world.attempts import Step, Task
from tests.playbook.world.drawn import Kind

AGENT = "coordinator"
_MARK = re.compile(r"^\s*\[([^\]\s]+)\]")


def recorded(
    name: str, task: Task, kind: Kind, lessons: Sequence[Lesson], steps: Sequence[Step]
) -> tuple[Chunk, ...]:
    """The chunks of the session `name`, in which these steps were done; a person's words after a file was made are the
    request of a second run."""
    session = _Session(name)
    session.start(task.prompt, lessons)
    cited: list[str] = []
    for step in steps:
        mark = _MARK.match(step.advice)
        says = f"I follow [{mark[1]}]." if mark else "I try this."
        if mark:
            cited.append(mark[1])
        match kind:
            case "command":
                session.command(step, says)
            case "folder":
                session.asked_file(step, task, says)
            case "ending":
                session.made_file(step, task, says)
    told = {each.id for each in lessons}
    session.end(
        "That passed." if not steps[-1].code else "That is all that I tried.",
        tuple(dict.fromkeys(one for one in cited if one in told)),
    )
    if kind == "ending" and steps[-1].code:
        session.rejected(steps[-1].action, task)
        if steps[-1].said:
            session.start(steps[-1].said, ())
            session.end("I see.", ())
    return tuple(session.chunks)


class _Session:
    """A session that is being written."""

    def __init__(self, name: str) -> None:
        self.chunks: list[Chunk] = []
        self._name = name
        self._runs = 0
        self._calls = 0

    def _add(self, *events: Event) -> None:
        for event in events:
            number = len(self.chunks) + 1
            time = f"2026-01-02T03:{number // 60:02}:{number % 60:02}.000Z"
            self.chunks.append(
                Chunk(
                    number, time, f"sess_{self._name}", self._run(), AGENT, event, encode_event(event), None
                )
            )

    def start(self, prompt: str, lessons: Sequence[Lesson]) -> None:
        self._runs += 1
        self._add(
            RunStarted(prompt=prompt, may_edit=True, model="world/actor", lessons=tuple(lessons)),
            AgentStart(),
        )

    def end(self, text: str, cited: tuple[str, ...]) -> None:
        said = MessageEvent(role="assistant", text=Text(text), agent=AGENT)
        events = [each.event for each in self.chunks if each.run == self._run()]
        status = end_events(fold([*events, said]), "completed")[1].status
        self._add(said, AgentEnd(), RunFinished(status=status, text=Text(text), used_bullets=cited))

    def _run(self) -> str:
        return f"run_{self._name}_{self._runs}"

    def _asks(self, tool: str, args: JsonObject, says: str) -> str:
        """A reply that wants this done; the call's id."""
        self._calls += 1
        call = f"call_{self._calls}"
        asked = (ToolCall(id=call, tool=tool, args=args),)
        self._add(MessageEvent(role="assistant", text=Text(says), agent=AGENT, calls=asked))
        return call

    def _called(self, tool: str, args: JsonObject, says: str) -> str:
        call = self._asks(tool, args, says)
        self._add(ToolCallEvent(id=call, tool=tool, args=args))
        return call

    def command(self, step: Step, says: str) -> None:
        """A command that ended."""
        call = self._called("shell/run", {"command": step.action}, says)
        self._add(
            ToolResponse(
                id=call,
                tool="shell/run",
                ok=not step.code,
                result=Text(f"Exit code {step.code} after 0.0 s.\n{step.said.rstrip()}"),
                data={"exitCode": step.code, "output": step.said, "durationMs": 2},
                outcome="failed" if step.code else "done",
            )
        )

    def asked_file(self, step: Step, task: Task, says: str) -> None:
        """A file that the person was asked about before it was made."""
        args: JsonObject = {"path": step.action, "content": f"{task.prompt}\n"}
        call = self._asks("files/write", args, says)
        approval = f"approval_{self._calls}"
        self._add(
            ApprovalAsked(
                approval_id=approval,
                kind="edit",
                tool="files/write",
                args=args,
                preview=Text(_diff(step.action, task)),
                why=Text(""),
                call_id=call,
            )
        )
        if not step.code:
            self._add(ApprovalGiven(approval_id=approval, decision="allow_once"))
            self._add(ToolCallEvent(id=call, tool="files/write", args=args))
            self._made(step, task, call)
            return
        self._add(
            ApprovalGiven(approval_id=approval, decision="reject_once", feedback=step.said or None),
            ToolCallEvent(id=call, tool="files/write", args=args),
            ToolResponse(
                id=call,
                tool="files/write",
                ok=False,
                result=Text(f"The user rejected this. {step.said}".strip()),
                outcome="rejected",
            ),
        )

    def made_file(self, step: Step, task: Task, says: str) -> None:
        """A file that was made without a question."""
        call = self._called("files/write", {"path": step.action, "content": f"{task.prompt}\n"}, says)
        self._made(step, task, call)

    def _made(self, step: Step, task: Task, call: str) -> None:
        checkpoint = f"checkpoint_{self._calls}"
        stat = FileStat(path=step.action, kind="create", added=1)
        self._add(
            CheckpointEvent(checkpoint_id=checkpoint, files=(step.action,)),
            Edit(files=(stat,), checkpoint_id=checkpoint, call_id=call, diff=_diff(step.action, task)),
            ToolResponse(
                id=call,
                tool="files/write",
                ok=True,
                result=Text(f"Made {step.action} (+1 -0)"),
                outcome="done",
            ),
        )

    def rejected(self, path: str, task: Task) -> None:
        """The person takes a file back in the review."""
        self._add(
            Review(decision="reject", path=path, hunks=1, checkpoint_id="back", lines=f"+{task.prompt}\n")
        )


def _diff(path: str, task: Task) -> str:
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{task.prompt}\n"
