"""The runner: commands for this project, one after the other, and a bounded repair where one fails."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence

from pydantic import JsonValue

from daiku.domain.base import Frozen, JsonObject
from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, CommandsRun
from daiku.models.rules.replies.parse import Unreadable
from daiku.models.rules.replies.roleforms import read_commands, read_repair
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.coding.coder import CHANGING, Changes, changes_in
from daiku.team.coding.handover_text import fenced, step_line
from daiku.team.part import Part, Stage
from daiku.team.role import Failed, Role, merge_role_calls, messages_since_request
from daiku.team.rules.proof.failures import CommandRun, hides_exit_code, is_lookup, open_failures
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, joined, text


def _queue_metadata(commands: Sequence[str], note: JsonObject | None = None) -> JsonObject:
    """Build the message data that lists `commands` still to be run, and a `note` on what is being repaired."""
    waiting: list[JsonValue] = list(commands)
    return {"daiku": {"then": waiting, **(note or {})}}


def _commands_of(here: Sequence[Message]) -> tuple[CommandRun, ...]:
    """Every command of shell/run with its result, in order."""
    asked: dict[str, tuple[str, bool, str]] = {}
    for m in here:
        if isinstance(m, AssistantMessage):
            told = m.opaque.get("daiku")
            stead = str(told.get("stead", "")) if isinstance(told, dict) else ""
            for call in m.calls:
                if call.tool == "shell/run":
                    command = str(call.args.get("command", ""))
                    asked[call.id] = (command, _queued_commands(m) is not None, stead)
    found: list[CommandRun] = []
    for m in here:
        if isinstance(m, ToolMessage) and m.call_id in asked:
            command, listed, stead = asked[m.call_id]
            found.append(CommandRun(command, m.ok, m.text, m.call_id, listed, stead, m.exit_code))
    return tuple(found)


def _open_failure(here: Sequence[Message]) -> CommandRun | None:
    """Return the latest failed command that is not fixed yet."""
    return next(reversed(open_failures(_commands_of(here))), None)


def _counts_as_attempt(each: CommandRun) -> bool:
    """Return whether a command was on the reply's list, or did more than only read."""
    return each.listed or not is_lookup(each.command)


def _repairs_used(here: Sequence[Message]) -> int:
    """Count the repairs: failures after the first, or replies marked as a repair, whichever is more."""
    failures = sum(not each.ok and _counts_as_attempt(each) for each in _commands_of(here))
    made = sum(
        isinstance(told := m.opaque.get("daiku"), dict) and told.get("repair") is True
        for m in here
        if isinstance(m, AssistantMessage)
    )
    return max(failures - 1, made)


def _queued_commands(message: AssistantMessage) -> tuple[str, ...] | None:
    """Return the commands that a runner's reply listed to be run; None if it listed none."""
    told = message.opaque.get("daiku")
    then = told.get("then") if isinstance(told, dict) else None
    return tuple(str(command) for command in then) if isinstance(then, list) else None


def _waiting_commands(here: Sequence[Message]) -> tuple[str, ...] | None:
    """The commands of the reply's list that are still to be run; None where there is no list."""
    said = (_queued_commands(m) for m in reversed(here) if isinstance(m, AssistantMessage))
    return next((then for then in said if then is not None), None)


def _outcome_lines(ran: Sequence[CommandRun]) -> Text:
    """Each command with what came of it, one line each."""
    return joined("lines", [text("roles.ran", command=each.command, outcome=_outcome(each)) for each in ran])


def _outcome(ran: CommandRun) -> Text:
    if ran.exit_code is not None:
        return text("team.exit_code", code=ran.exit_code)
    return text("roles.started") if ran.ok else text("roles.not_run")


DOING = ("shell/run", *CHANGING)
MAX_REPAIRS = 2
"""Repairs of one run, whatever commands they are for (B0.6)."""
SHOWN_END = 3000
SHOWN_COMMAND = 200
_CHOICE = re.compile(r'^(?:`{3}\w*\n)?\{\s*"action"\s*:\s*"patch"\s*\}\s*?$(?:\n`{3}[ \t]*$)?', re.MULTILINE)
"""The choice of a patch that follows: nobody needs to read it."""


class RunVariables(Frozen):
    """What the runner is asked (R0.73)."""

    last_message: str
    transcript: str
    code_markdown: str
    step: str
    system_os: str


def run_request(brief: Brief) -> str:
    """Build the runner's request: the conversation, the code, the last message, the operating system."""
    code = _code(brief)
    return render(
        "team/runner_request",
        RunVariables(
            last_message=_line(brief.request),
            transcript=fenced("\n".join(_conversation(brief))),
            code_markdown=fenced(code, "~") if code else "",
            step=step_line(brief.plan, brief.step_id),
            system_os=f"{platform.system()} {platform.machine()}",
        ),
    ).strip()


def commands_run(state: State) -> CommandsRun | Unreadable:
    """Return every command that the run executed; if there are none, the notes say why."""
    return CommandsRun(commands=state.done.commands, notes=state.conversation.text)


def _conversation(brief: Brief) -> list[str]:
    """One line a message (R0.74); the person's last message is the last."""
    lines: list[str] = []
    if brief.plan is not None and brief.plan.summary:
        lines.append(f"Planner: {_line(brief.plan.summary)}")
    if brief.edits is not None and brief.edits.notes:
        lines.append(f"Coder: {_line(brief.edits.notes)}")
    return [*lines, f"User: {_line(brief.request)}"]


def _code(brief: Brief) -> str:
    """The code that was written, else the names of its files; empty where none was."""
    if brief.code:
        return brief.code
    files = brief.edits.files if brief.edits is not None else ()
    return "\n".join(f"File: `{f.path}` ({f.kind}, +{f.added} -{f.removed})" for f in files)


def _line(text: str) -> str:
    return " ".join(text.split())


class RepairVariables(Frozen):
    """What the model is reminded of after a failure."""

    command: str
    exit_code: int | None
    left: int
    most: int
    waiting: str
    by_tools: bool


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with a call for its first command or repair. Plain text ends the run after a call."""
    here = messages_since_request(messages)
    if message.calls:
        return _beside(message, messages, cut)
    failed, waiting = _open_failure(here), _waiting_commands(here)
    reply = _form(message, messages, cut)
    if isinstance(reply, Unreadable) and _has_looked(messages) and (failed is None or waiting is None):
        reply = message if reply.words_only else reply
    if isinstance(reply, AssistantMessage) and not reply.calls and failed is None:
        return _hidden([each.command for each in _commands_of(here)][-1:], messages) or reply
    return reply


def _beside(message: AssistantMessage, messages: tuple[Message, ...], cut: bool) -> AssistantMessage:
    """A reply with calls of its own: those of its form's commands that it calls itself run once."""
    form = _form(message, messages, cut)
    own = [call.args.get("command") for call in message.calls if call.tool == "shell/run"]
    if isinstance(form, AssistantMessage) and form.calls and own:
        listed = [form.calls[0].args.get("command"), *(_queued_commands(form) or ())]
        left = [str(command) for command in listed if command not in own]
        form = _run(left, form.text) if left else AssistantMessage(text=form.text)
    return merge_role_calls(message, form)


def _form(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """What the form in a reply comes to: its commands, or the repair of the command that failed."""
    here = messages_since_request(messages)
    failed, waiting = _open_failure(here), _waiting_commands(here) or ()
    commands = read_commands(message.text, cut=cut)
    if failed is not None:
        repair = _repair(message, failed, waiting, cut=cut)
        if isinstance(commands, Unreadable) or isinstance(repair, AssistantMessage):
            return _checked(repair, messages)
    if isinstance(commands, Unreadable):
        return commands
    wanted = list(commands.commands)
    if not wanted:
        return AssistantMessage(text=text("roles.nothing_to_run"), thinking=message.thinking)
    shown = "\n".join(f"- `{command}`" for command in wanted)
    return _hidden(wanted, messages) or _run(wanted, Text(shown), message.thinking)


def _checked(
    repair: AssistantMessage | Unreadable, messages: tuple[Message, ...]
) -> AssistantMessage | Unreadable:
    if isinstance(repair, Unreadable):
        return repair
    commands = [str(c.args.get("command", "")) for c in repair.calls if c.tool == "shell/run"]
    return _hidden(commands, messages) or repair


def _hidden(commands: Sequence[str], messages: tuple[Message, ...]) -> Unreadable | None:
    """What is wrong with a command that hides its exit code, unless the person wrote it so."""
    asked = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
    for command in commands:
        if command not in asked and hides_exit_code(command):
            shown = truncate_middle(command, SHOWN_COMMAND)
            return Unreadable(text("roles.hides_exit_code", command=shown))
    return None


def prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Accept words as the end; ask once if a failed command may be repaired, or the last exit code says nothing."""
    here = messages_since_request(messages)
    failed = _open_failure(here)
    if failed is not None and _repairs_used(here) < MAX_REPAIRS:
        return Unreadable(
            text("roles.repair_or_stop", command=truncate_middle(failed.command, SHOWN_COMMAND))
        )
    return _hidden([each.command for each in _commands_of(here)][-1:], messages) or message


def after_calls(messages: tuple[Message, ...]) -> AssistantMessage | Failed | None:
    """The next command while all goes well; the end, when there is none or the repairs are used up."""
    here = messages_since_request(messages)
    if not here or not isinstance(here[-1], ToolMessage):
        return None
    spoke = next(m for m in reversed(here) if isinstance(m, AssistantMessage))
    ran, failed, waiting = _commands_of(here), _open_failure(here), _waiting_commands(here)
    again = failed is not None and bool(waiting) and waiting[0] == failed.command
    if failed is not None and _repairs_used(here) >= MAX_REPAIRS:
        last = next(each for each in reversed(ran) if each.ok or _counts_as_attempt(each))
        if not last.ok or (_queued_commands(spoke) is not None and not again and not _changes(spoke)):
            return _given_up(ran, failed, waiting or ())
    answers = (m for m in here[here.index(spoke) + 1 :] if isinstance(m, ToolMessage) and m.tool in DOING)
    if waiting is None or not all(m.ok for m in answers):
        return None
    if failed is not None and _changes(spoke):
        return _run([failed.command, *(command for command in waiting if command != failed.command)])
    if not any(call.tool == "shell/run" for call in spoke.calls) or (failed is not None and not again):
        return None
    if waiting:
        return _run(waiting)
    return AssistantMessage(text=_outcome_lines(ran))


def _changes(message: AssistantMessage) -> bool:
    return bool(message.calls) and {call.tool for call in message.calls} <= set(CHANGING)


def failure_of(messages: tuple[Message, ...], message: AssistantMessage) -> Failed | None:
    """Return the failure of a run that ends with `message`, judged by exit codes only; None if it succeeded."""
    failures = open_failures(_commands_of(messages_since_request(messages)))
    if not failures:
        return None
    last = failures[-1]
    shown = truncate_middle(last.command, SHOWN_COMMAND)
    failure = Failure(
        kind="tool",
        message=text("roles.failed_with_code", command=shown, code=last.exit_code)
        if last.exit_code is not None
        else text("roles.failed", command=shown),
        hint=text("roles.see_output"),
    )
    return Failed(message.text, failure)


def remind(messages: tuple[Message, ...], by_tools: bool = False) -> str:
    """Build the reminder about the command that failed and the possible repairs; empty if none failed."""
    here = messages_since_request(messages)
    failed = _open_failure(here)
    if failed is None:
        return ""
    return render(
        "team/runner_repair",
        RepairVariables(
            command=failed.command,
            exit_code=failed.exit_code,
            left=max(0, MAX_REPAIRS - _repairs_used(here)),
            most=MAX_REPAIRS,
            waiting=", ".join(f"`{command}`" for command in _waiting_commands(here) or ()),
            by_tools=by_tools,
        ),
    ).strip()


def _run(
    commands: Sequence[str], said: Text = NO_TEXT, thinking: str = "", repairs: str | None = None
) -> AssistantMessage:
    """Run the first of `commands`; the others wait. `repairs`: the failed command replaced, empty if run again."""
    told: dict[str, JsonValue] = {} if repairs is None else {"repair": True, "stead": repairs}
    return AssistantMessage(
        text=said,
        thinking=thinking,
        calls=(ToolCall(tool="shell/run", args={"command": commands[0]}),),
        opaque=_queue_metadata(commands[1:], told),
    )


def _repair(
    message: AssistantMessage, failed: CommandRun, waiting: Sequence[str], *, cut: bool
) -> AssistantMessage | Unreadable:
    """The repair, and what is to be run after it. After a patch the command that failed is run again."""
    chosen = read_repair(message.text, cut=cut)
    if isinstance(chosen, Unreadable) or chosen.action == "patch":
        patch = message.text if isinstance(chosen, Unreadable) else chosen.patch or message.text
        changes = changes_in(_CHOICE.sub("", patch), cut=cut)
        if isinstance(changes, Changes) and not changes.unfinished:
            return AssistantMessage(
                text=changes.said,
                thinking=message.thinking,
                calls=changes.calls,
                opaque=_queue_metadata(waiting),
            )
        return chosen if isinstance(chosen, Unreadable) else Unreadable(text("roles.patch_without_change"))
    if chosen.action == "stop":
        said = Text(chosen.reason) if chosen.reason else text("roles.cannot_mend")
        return AssistantMessage(text=said, thinking=message.thinking)
    if not chosen.command.strip():
        return Unreadable(text("roles.no_command"))
    again = [failed.command] if chosen.retry and chosen.command != failed.command else []
    after = again + [command for command in waiting if command not in again]
    stead = "" if again else failed.command
    return _run([chosen.command, *after], thinking=message.thinking, repairs=stead)


def _given_up(ran: Sequence[CommandRun], failed: CommandRun, waiting: Sequence[str]) -> Failed:
    names = ", ".join(f"`{command}`" for command in waiting)
    rest = text("roles.left_unrun", names=names) if waiting else ""
    command = truncate_middle(failed.command, SHOWN_COMMAND)
    message = text("roles.still_fails", command=command, count=MAX_REPAIRS)
    parts = (message, _outcome_lines(ran), rest, fenced(truncate_middle(failed.text, SHOWN_END)))
    return Failed(
        joined("paragraphs", parts), Failure(kind="tool", message=message, hint=text("roles.see_output"))
    )


def _has_looked(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(m, ToolMessage) for m in messages_since_request(messages))


RUN = Role(read, after_calls, remind, prose=prose, failed=failure_of, has_result=_has_looked)


RUNNER = Agent(
    "runner",
    Prompt("team/runner"),
    tools=(*LOOKING, "shell/*", "files/write", "files/edit", "files/patch"),
    part=Part(
        label=Label("Runner", "ランナー"),
        description="runs commands, and repairs what fails",
        role=RUN,
        knows_project=True,
        may_cd=False,
        stage=Stage(commands_run, run_request, shows="changed"),
    ),
)
