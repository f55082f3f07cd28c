"""The runner agent: runs the project's commands in order, with a limited number of repairs for failures."""

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
from daiku.team.coding.coder import CHANGING, ParsedChanges, parse_changes
from daiku.team.coding.handover_text import fence, format_step
from daiku.team.part import Part, Stage
from daiku.team.role import Failed, Role, merge_role_calls, select_messages_since_request
from daiku.team.rules.proof.failures import CommandRun, find_open_failures, hides_exit_code, is_lookup
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, joined, text


def _build_queue_data(commands: Sequence[str], note: JsonObject | None = None) -> JsonObject:
    """Build the message data with the queued `commands` and a `note` on the repair."""
    queue: list[JsonValue] = list(commands)
    return {"daiku": {"then": queue, **(note or {})}}


def _find_commands(recent: Sequence[Message]) -> tuple[CommandRun, ...]:
    """Return every command of shell/run with its result, in order."""
    requested: dict[str, tuple[str, bool, str]] = {}
    for m in recent:
        if isinstance(m, AssistantMessage):
            data = m.opaque.get("daiku")
            replaces = str(data.get("stead", "")) if isinstance(data, dict) else ""
            for call in m.calls:
                if call.tool == "shell/run":
                    command = str(call.args.get("command", ""))
                    requested[call.id] = (command, _find_queue(m) is not None, replaces)
    commands: list[CommandRun] = []
    for m in recent:
        if isinstance(m, ToolMessage) and m.call_id in requested:
            command, is_queued, replaces = requested[m.call_id]
            commands.append(CommandRun(command, m.ok, m.text, m.call_id, is_queued, replaces, m.exit_code))
    return tuple(commands)


def _find_open_failure(recent: Sequence[Message]) -> CommandRun | None:
    """Return the latest failed command that is not fixed yet."""
    return next(reversed(find_open_failures(_find_commands(recent))), None)


def _is_attempt(run: CommandRun) -> bool:
    """Return True if a command was queued by the reply, or does more than read."""
    return run.is_queued or not is_lookup(run.command)


def _count_repairs(recent: Sequence[Message]) -> int:
    """Count the repairs: failures after the first, or replies marked as a repair, whichever is more."""
    failures = sum(not run.ok and _is_attempt(run) for run in _find_commands(recent))
    marked = sum(
        isinstance(data := m.opaque.get("daiku"), dict) and data.get("repair") is True
        for m in recent
        if isinstance(m, AssistantMessage)
    )
    return max(failures - 1, marked)


def _find_queue(message: AssistantMessage) -> tuple[str, ...] | None:
    """Return the commands that a runner's reply queued; None if it has no queue."""
    data = message.opaque.get("daiku")
    queue = data.get("then") if isinstance(data, dict) else None
    return tuple(str(command) for command in queue) if isinstance(queue, list) else None


def _find_waiting_commands(recent: Sequence[Message]) -> tuple[str, ...] | None:
    """Return the queued commands that are still to be run; None if there is no queue."""
    queues = (_find_queue(m) for m in reversed(recent) if isinstance(m, AssistantMessage))
    return next((queue for queue in queues if queue is not None), None)


def _format_outcomes(commands: Sequence[CommandRun]) -> Text:
    """Format each command with its outcome, one line each."""
    return joined(
        "lines", [text("roles.ran", command=run.command, outcome=_format_outcome(run)) for run in commands]
    )


def _format_outcome(run: CommandRun) -> Text:
    if run.exit_code is not None:
        return text("team.exit_code", code=run.exit_code)
    return text("roles.started") if run.ok else text("roles.not_run")


DOING = ("shell/run", *CHANGING)
MAX_REPAIRS = 2
"""Maximum number of repairs per run, for all commands together (B0.6)."""
SHOWN_END = 3000
SHOWN_COMMAND = 200
_CHOICE = re.compile(r'^(?:`{3}\w*\n)?\{\s*"action"\s*:\s*"patch"\s*\}\s*?$(?:\n`{3}[ \t]*$)?', re.MULTILINE)
"""The line that announces a patch; it is removed from the displayed reply."""


class RunVariables(Frozen):
    """Template variables of the runner's request (R0.73)."""

    last_message: str
    transcript: str
    code_markdown: str
    step: str
    system_os: str


def build_run_request(brief: Brief) -> str:
    """Build the runner's request: the conversation, the code, the last message, and the operating system."""
    code = _format_code(brief)
    return render(
        "agents/runner_request",
        RunVariables(
            last_message=_collapse_whitespace(brief.request),
            transcript=fence("\n".join(_format_conversation(brief))),
            code_markdown=fence(code, "~") if code else "",
            step=format_step(brief.plan, brief.step_id),
            system_os=f"{platform.system()} {platform.machine()}",
        ),
    ).strip()


def collect_commands(state: State) -> CommandsRun | Unreadable:
    """Return every command that the run executed; if there are none, the notes say why."""
    return CommandsRun(commands=state.done.commands, notes=state.conversation.text)


def _format_conversation(brief: Brief) -> list[str]:
    """Format the conversation, one line per message (R0.74), the user's request last."""
    lines: list[str] = []
    if brief.plan is not None and brief.plan.summary:
        lines.append(f"Planner: {_collapse_whitespace(brief.plan.summary)}")
    if brief.edits is not None and brief.edits.notes:
        lines.append(f"Coder: {_collapse_whitespace(brief.edits.notes)}")
    return [*lines, f"User: {_collapse_whitespace(brief.request)}"]


def _format_code(brief: Brief) -> str:
    """Return the written code, else the names of its files; empty if there is none."""
    if brief.code:
        return brief.code
    files = brief.edits.files if brief.edits is not None else ()
    return "\n".join(f"File: `{f.path}` ({f.kind}, +{f.added} -{f.removed})" for f in files)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


class RepairVariables(Frozen):
    """Template variables of the reminder after a failure."""

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
    recent = select_messages_since_request(messages)
    if message.calls:
        return _merge_form(message, messages, cut)
    failed, queue = _find_open_failure(recent), _find_waiting_commands(recent)
    reply = _parse_form(message, messages, cut)
    if isinstance(reply, Unreadable) and _has_results(messages) and (failed is None or queue is None):
        reply = message if reply.words_only else reply
    if isinstance(reply, AssistantMessage) and not reply.calls and failed is None:
        return _check_exit_code([run.command for run in _find_commands(recent)][-1:], messages) or reply
    return reply


def _merge_form(message: AssistantMessage, messages: tuple[Message, ...], cut: bool) -> AssistantMessage:
    """Merge a reply's own calls with its form; commands in both run once."""
    form = _parse_form(message, messages, cut)
    own = [call.args.get("command") for call in message.calls if call.tool == "shell/run"]
    if isinstance(form, AssistantMessage) and form.calls and own:
        queued = [form.calls[0].args.get("command"), *(_find_queue(form) or ())]
        remaining = [str(command) for command in queued if command not in own]
        form = _build_run(remaining, form.text) if remaining else AssistantMessage(text=form.text)
    return merge_role_calls(message, form)


def _parse_form(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Parse the form in a reply: its commands, or the repair of the failed command."""
    recent = select_messages_since_request(messages)
    failed, queue = _find_open_failure(recent), _find_waiting_commands(recent) or ()
    commands = read_commands(message.text, cut=cut)
    if failed is not None:
        repair = _parse_repair(message, failed, queue, cut=cut)
        if isinstance(commands, Unreadable) or isinstance(repair, AssistantMessage):
            return _check_repair(repair, messages)
    if isinstance(commands, Unreadable):
        return commands
    requested = list(commands.commands)
    if not requested:
        return AssistantMessage(text=text("roles.nothing_to_run"), thinking=message.thinking)
    listing = "\n".join(f"- `{command}`" for command in requested)
    return _check_exit_code(requested, messages) or _build_run(requested, Text(listing), message.thinking)


def _check_repair(
    repair: AssistantMessage | Unreadable, messages: tuple[Message, ...]
) -> AssistantMessage | Unreadable:
    """Return `repair` unless one of its commands hides its exit code."""
    if isinstance(repair, Unreadable):
        return repair
    commands = [str(c.args.get("command", "")) for c in repair.calls if c.tool == "shell/run"]
    return _check_exit_code(commands, messages) or repair


def _check_exit_code(commands: Sequence[str], messages: tuple[Message, ...]) -> Unreadable | None:
    """Return an error if a command hides its exit code and the user did not write it that way."""
    request = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
    for command in commands:
        if command not in request and hides_exit_code(command):
            return Unreadable(text("roles.hides_exit_code", command=truncate_middle(command, SHOWN_COMMAND)))
    return None


def judge_prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Accept plain text as the end.

    Ask once if a failed command may be repaired, or if the last exit code is hidden.
    """
    recent = select_messages_since_request(messages)
    failed = _find_open_failure(recent)
    if failed is not None and _count_repairs(recent) < MAX_REPAIRS:
        return Unreadable(
            text("roles.repair_or_stop", command=truncate_middle(failed.command, SHOWN_COMMAND))
        )
    return _check_exit_code([run.command for run in _find_commands(recent)][-1:], messages) or message


def continue_after_calls(messages: tuple[Message, ...]) -> AssistantMessage | Failed | None:
    """Return the next command while all succeed; the end if there is none or the repairs are used up."""
    recent = select_messages_since_request(messages)
    if not recent or not isinstance(recent[-1], ToolMessage):
        return None
    reply = next(m for m in reversed(recent) if isinstance(m, AssistantMessage))
    commands, failed = _find_commands(recent), _find_open_failure(recent)
    queue = _find_waiting_commands(recent)
    is_retry = failed is not None and bool(queue) and queue[0] == failed.command
    if failed is not None and _count_repairs(recent) >= MAX_REPAIRS:
        last = next(run for run in reversed(commands) if run.ok or _is_attempt(run))
        if not last.ok or (_find_queue(reply) is not None and not is_retry and not _is_change(reply)):
            return _build_failure(commands, failed, queue or ())
    results = (m for m in recent[recent.index(reply) + 1 :] if isinstance(m, ToolMessage) and m.tool in DOING)
    if queue is None or not all(m.ok for m in results):
        return None
    if failed is not None and _is_change(reply):
        return _build_run([failed.command, *(command for command in queue if command != failed.command)])
    if not any(call.tool == "shell/run" for call in reply.calls) or (failed is not None and not is_retry):
        return None
    if queue:
        return _build_run(queue)
    return AssistantMessage(text=_format_outcomes(commands))


def _is_change(message: AssistantMessage) -> bool:
    return bool(message.calls) and {call.tool for call in message.calls} <= set(CHANGING)


def find_failure(messages: tuple[Message, ...], message: AssistantMessage) -> Failed | None:
    """Return the failure of a run that ends with `message`, judged by exit codes only; None if it succeeded."""
    failures = find_open_failures(_find_commands(select_messages_since_request(messages)))
    if not failures:
        return None
    last = failures[-1]
    excerpt = truncate_middle(last.command, SHOWN_COMMAND)
    failure = Failure(
        kind="tool",
        message=text("roles.failed_with_code", command=excerpt, code=last.exit_code)
        if last.exit_code is not None
        else text("roles.failed", command=excerpt),
        hint=text("roles.see_output"),
    )
    return Failed(message.text, failure)


def remind(messages: tuple[Message, ...], by_tools: bool = False) -> str:
    """Build the reminder about the failed command and the possible repairs; empty if none failed."""
    recent = select_messages_since_request(messages)
    failed = _find_open_failure(recent)
    if failed is None:
        return ""
    return render(
        "agents/runner_repair",
        RepairVariables(
            command=failed.command,
            exit_code=failed.exit_code,
            left=max(0, MAX_REPAIRS - _count_repairs(recent)),
            most=MAX_REPAIRS,
            waiting=", ".join(f"`{command}`" for command in _find_waiting_commands(recent) or ()),
            by_tools=by_tools,
        ),
    ).strip()


def _build_run(
    commands: Sequence[str], words: Text = NO_TEXT, thinking: str = "", repairs: str | None = None
) -> AssistantMessage:
    """Build the reply that runs the first of `commands` and queues the others.

    `repairs`: the failed command that is replaced, empty if it is run again; None: no repair.
    """
    note: dict[str, JsonValue] = {} if repairs is None else {"repair": True, "stead": repairs}
    return AssistantMessage(
        text=words,
        thinking=thinking,
        calls=(ToolCall(tool="shell/run", args={"command": commands[0]}),),
        opaque=_build_queue_data(commands[1:], note),
    )


def _parse_repair(
    message: AssistantMessage, failed: CommandRun, queue: Sequence[str], *, cut: bool
) -> AssistantMessage | Unreadable:
    """Build the repair, and the commands after it. After a patch the failed command is run again."""
    choice = read_repair(message.text, cut=cut)
    if isinstance(choice, Unreadable) or choice.action == "patch":
        patch = message.text if isinstance(choice, Unreadable) else choice.patch or message.text
        changes = parse_changes(_CHOICE.sub("", patch), cut=cut)
        if isinstance(changes, ParsedChanges) and not changes.unfinished:
            return AssistantMessage(
                text=changes.reply,
                thinking=message.thinking,
                calls=changes.calls,
                opaque=_build_queue_data(queue),
            )
        return choice if isinstance(choice, Unreadable) else Unreadable(text("roles.patch_without_change"))
    if choice.action == "stop":
        words = Text(choice.reason) if choice.reason else text("roles.cannot_mend")
        return AssistantMessage(text=words, thinking=message.thinking)
    if not choice.command.strip():
        return Unreadable(text("roles.no_command"))
    retry = [failed.command] if choice.retry and choice.command != failed.command else []
    after = retry + [command for command in queue if command not in retry]
    replaces = "" if retry else failed.command
    return _build_run([choice.command, *after], thinking=message.thinking, repairs=replaces)


def _build_failure(commands: Sequence[CommandRun], failed: CommandRun, queue: Sequence[str]) -> Failed:
    """Build the failure of a run whose repairs are used up."""
    names = ", ".join(f"`{command}`" for command in queue)
    not_run_note = text("roles.left_unrun", names=names) if queue else ""
    command = truncate_middle(failed.command, SHOWN_COMMAND)
    message = text("roles.still_fails", command=command, count=MAX_REPAIRS)
    parts = (
        message,
        _format_outcomes(commands),
        not_run_note,
        fence(truncate_middle(failed.text, SHOWN_END)),
    )
    return Failed(
        joined("paragraphs", parts), Failure(kind="tool", message=message, hint=text("roles.see_output"))
    )


def _has_results(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(m, ToolMessage) for m in select_messages_since_request(messages))


RUN = Role(
    read, continue_after_calls, remind, prose=judge_prose, failed=find_failure, has_result=_has_results
)

RUNNER = Agent(
    "runner",
    Prompt("agents/runner"),
    tools=(*LOOKING, "shell/*", "files/write", "files/edit", "files/patch"),
    part=Part(
        label=Label("Runner", "ランナー"),
        description="runs commands, and repairs what fails",
        role=RUN,
        knows_project=True,
        may_cd=False,
        stage=Stage(collect_commands, build_run_request, shows="changed"),
    ),
)
