"""The runner: commands for this project, one after the other, and a bounded repair where one fails."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import JsonValue

from daiku.agents.coder import CHANGING, Changes, changes_in
from daiku.agents.role import Failed, Role, since_asked
from daiku.agents.telling import fenced, step_line
from daiku.core.commands import CommandRules, read_only
from daiku.core.cut import cut_middle
from daiku.core.parse import Unreadable, read_json
from daiku.core.replies import read_commands
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.errors import Failure
from daiku.domain.handovers import Brief, CommandsRun
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import ToolCall
from daiku.prompts import render

MAX_REPAIRS = 2
"""Repairs of one run, whatever commands they are for (B0.6)."""
NOTHING = "Nothing has to be run."
GIVEN_UP = "It cannot be mended here."
NO_CHANGES = "a patch needs the change below it: a path and SEARCH/REPLACE blocks, a diff or whole files"
SHOWN_END = 3000
_CHOICE = re.compile(r'^(?:`{3}\w*\n)?\{\s*"action"\s*:\s*"patch"\s*\}\s*?$(?:\n`{3}[ \t]*$)?', re.MULTILINE)
"""The choice of a patch that follows: nobody needs to read it."""
LOOKING_AROUND = CommandRules(resolve=lambda path: path)
"""By which it is told whether a command only looks: whatever place it looks at."""


class RunVariables(Frozen):
    """What the runner is asked (R0.73); the conversation's last message is its last line."""

    conversation: tuple[str, ...]
    transcript: str
    code_markdown: str
    step: str
    system_os: str


def run_request(brief: Brief) -> str:
    """The request to the runner: conversation, the code, the person's last message, the system."""
    conversation = tuple(_conversation(brief))
    return render(
        "agents/runner_request",
        RunVariables(
            conversation=conversation,
            transcript=fenced("\n".join(conversation)),
            code_markdown=fenced(_code(brief), "~"),
            step=step_line(brief.plan, brief.step_id),
            system_os=f"{platform.system()} {platform.machine()}",
        ),
    ).strip()


def commands_run(state: State) -> CommandsRun | Unreadable:
    """Every command that was really run; none is valid too, the notes then say why."""
    return CommandsRun(commands=state.done.commands, notes=state.text)


def _conversation(brief: Brief) -> list[str]:
    """One line a message (R0.74); the person's last message is the last."""
    lines: list[str] = []
    if brief.plan is not None and brief.plan.summary:
        lines.append(f"Planner: {_line(brief.plan.summary)}")
    if brief.edits is not None and brief.edits.notes:
        lines.append(f"Coder: {_line(brief.edits.notes)}")
    return [*lines, f"User: {_line(brief.request)}"]


def _code(brief: Brief) -> str:
    if brief.code:
        return brief.code
    files = brief.edits.files if brief.edits is not None else ()
    if not files:
        return "Nothing was written just now: the project as it is."
    return "\n".join(f"File: `{f.path}` ({f.kind}, +{f.added} -{f.removed})" for f in files)


def _line(text: str) -> str:
    return " ".join(text.split())


class Repair(Frozen):
    """What the model chose to do about a command that failed."""

    action: Literal["command", "patch", "stop"]
    command: str = ""
    retry: bool = False
    patch: str = ""
    reason: str = ""


class RepairVariables(Frozen):
    """What the model is reminded of after a failure."""

    command: str
    exit_code: str
    left: int
    most: int
    waiting: str


class Ran(NamedTuple):
    """A command of the run and what came of it."""

    command: str
    ok: bool
    text: str
    call_id: str

    @property
    def exit_code(self) -> str:
        """Empty where the command was not run."""
        found = re.match(r"Exit code (-?\d+)", self.text)
        return found[1] if found else ""


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """The reply with the first of its commands, or with the repair that it chose."""
    if message.calls:
        return message
    here = since_asked(messages)
    failed, waiting = _failed(here), _waiting(here)
    commands = read_commands(message.text, cut=cut)
    if not isinstance(commands, Unreadable):
        wanted = [command for command in commands.commands if command.strip()]
        if not wanted:
            return AssistantMessage(text=NOTHING, thinking=message.thinking)
        shown = "\n".join(f"- `{command}`" for command in wanted)
        return _run(wanted, text=shown, thinking=message.thinking)
    reply = commands if failed is None else _repair(message, failed, waiting or (), cut=cut)
    looked = any(isinstance(m, ToolMessage) for m in here)
    if isinstance(reply, Unreadable) and looked and (failed is None or waiting is None):
        return message if message.text.strip() else reply
    return reply


def go_on(messages: tuple[Message, ...]) -> AssistantMessage | Failed | None:
    """The next command while all goes well; the end, when there is none or the repairs are used up."""
    here = since_asked(messages)
    if not here or not isinstance(here[-1], ToolMessage):
        return None
    ran, failed, waiting = _ran(here), _failed(here), _waiting(here)
    if sum(not each.ok for each in _tried(here)) > MAX_REPAIRS and failed is not None:
        return _given_up(ran, waiting or ())
    spoke = next(m for m in reversed(here) if isinstance(m, AssistantMessage))
    if waiting is None or not all(m.ok for m in here[here.index(spoke) + 1 :] if isinstance(m, ToolMessage)):
        return None
    tools = {call.tool for call in spoke.calls}
    if failed is not None:
        return _run([failed.command, *waiting]) if tools <= set(CHANGING) else None
    if "shell/run" not in tools:
        return None
    return _run(waiting) if waiting else AssistantMessage(text=_listed(ran))


def remind(messages: tuple[Message, ...]) -> str:
    """What failed, and what can be chosen; empty where nothing did just now."""
    here = since_asked(messages)
    failed = _failed(here)
    if failed is None:
        return ""
    failures = sum(not each.ok for each in _tried(here))
    return render(
        "agents/runner_repair",
        RepairVariables(
            command=failed.command,
            exit_code=failed.exit_code,
            left=MAX_REPAIRS - failures + 1,
            most=MAX_REPAIRS,
            waiting=", ".join(f"`{command}`" for command in _waiting(here) or ()),
        ),
    ).strip()


def _run(commands: Sequence[str], text: str = "", thinking: str = "") -> AssistantMessage:
    """A reply that runs the first of `commands`; the others wait for it."""
    return AssistantMessage(
        text=text,
        thinking=thinking,
        calls=(ToolCall(tool="shell/run", args={"command": commands[0]}),),
        opaque=_then(commands[1:]),
    )


def _then(commands: Sequence[str]) -> dict[str, JsonValue]:
    waiting: list[JsonValue] = list(commands)
    return {"daiku": {"then": waiting}}


def _repair(
    message: AssistantMessage, failed: Ran, waiting: Sequence[str], *, cut: bool
) -> AssistantMessage | Unreadable:
    """The repair, and what is to be run after it. After a patch the command that failed is run again."""
    chosen = read_json(message.text, Repair.model_validate, cut=cut)
    if isinstance(chosen, Unreadable) or chosen.action == "patch":
        patch = message.text if isinstance(chosen, Unreadable) else chosen.patch or message.text
        changes = changes_in(_CHOICE.sub("", patch), cut=cut)
        if isinstance(changes, Changes) and not changes.unfinished:
            return AssistantMessage(
                text=changes.said,
                thinking=message.thinking,
                calls=changes.calls,
                opaque=_then(waiting),
            )
        return chosen if isinstance(chosen, Unreadable) else Unreadable(NO_CHANGES)
    if chosen.action == "stop":
        return AssistantMessage(text=chosen.reason or GIVEN_UP, thinking=message.thinking)
    if not chosen.command.strip():
        return Unreadable('"command" is missing: the command to run')
    again = [failed.command] if chosen.retry and chosen.command != failed.command else []
    return _run([chosen.command, *again, *waiting], thinking=message.thinking)


def _ran(here: Sequence[Message]) -> tuple[Ran, ...]:
    """Every command of shell/run with its result, in order."""
    commands = {
        call.id: str(call.args.get("command", ""))
        for m in here
        if isinstance(m, AssistantMessage)
        for call in m.calls
        if call.tool == "shell/run"
    }
    return tuple(
        Ran(commands[m.call_id], m.ok, m.text, m.call_id)
        for m in here
        if isinstance(m, ToolMessage) and m.call_id in commands
    )


def _failed(here: Sequence[Message]) -> Ran | None:
    """The latest command, where it failed: then it is what has to be mended."""
    tried = _tried(here)
    return tried[-1] if tried and not tried[-1].ok else None


def _tried(here: Sequence[Message]) -> tuple[Ran, ...]:
    """The commands whose failure has to be mended: all but a model's own look around that found nothing."""
    listed = {
        c.id for m in here if isinstance(m, AssistantMessage) and _then_of(m) is not None for c in m.calls
    }
    return tuple(
        each
        for each in _ran(here)
        if each.ok or each.call_id in listed or not read_only(each.command, LOOKING_AROUND)
    )


def _then_of(message: AssistantMessage) -> tuple[str, ...] | None:
    """What a reply in the runner's own form left to be run."""
    told = message.opaque.get("daiku")
    then = told.get("then") if isinstance(told, dict) else None
    return tuple(str(command) for command in then) if isinstance(then, list) else None


def _waiting(here: Sequence[Message]) -> tuple[str, ...] | None:
    """The commands of the reply's list that are still to be run; None where there is no list."""
    said = (_then_of(m) for m in reversed(here) if isinstance(m, AssistantMessage))
    return next((then for then in said if then is not None), None)


def _listed(ran: Sequence[Ran]) -> str:
    return "\n".join(f"- `{each.command}`: {_outcome(each)}" for each in ran)


def _outcome(ran: Ran) -> str:
    return f"exit code {ran.exit_code}" if ran.exit_code else "not run" if not ran.ok else "started"


def _given_up(ran: Sequence[Ran], waiting: Sequence[str]) -> Failed:
    last = ran[-1]
    rest = f"\n\nNot run: {', '.join(f'`{command}`' for command in waiting)}" if waiting else ""
    message = f"`{cut_middle(last.command, 200)}` still fails after {MAX_REPAIRS} repairs."
    text = f"{message}\n\n{_listed(ran)}{rest}\n\n{fenced(cut_middle(last.text, SHOWN_END))}"
    return Failed(
        text, Failure(kind="tool", message=message, hint="See what it printed, and say how to go on.")
    )


RUN = Role(read, go_on, remind)
