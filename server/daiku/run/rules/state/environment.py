"""Environment facts in the model's messages: all of them once, then only changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import assert_never

from daiku.dataclass import dataclass
from daiku.domain.config import Answer
from daiku.domain.events import ApprovalKind
from daiku.domain.messages import UserMessage
from daiku.domain.runs import EnvironmentFact, Mode
from daiku.guard.rules.policy import Policy
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.visible import show_hidden

MODE, EDITOR, FOLDER, GIT, TOOLS = "Mode", "Editor", "Folder", "Git", "Tools"
"""Names of facts that other modules use."""
LONGEST_NAME = 120
"""Characters of a name from the project (branch, file), at most."""


def changed_facts(
    earlier: Sequence[EnvironmentFact], current: Sequence[EnvironmentFact]
) -> tuple[EnvironmentFact, ...]:
    """Return the `current` facts that differ from the `earlier` ones."""
    earlier_texts = {fact.name: fact.text for fact in earlier}
    return tuple(fact for fact in current if earlier_texts.get(fact.name) != fact.text)


def render_environment(facts: Sequence[EnvironmentFact], *, changed: bool = False) -> str:
    """Return the facts as the model reads them, one per line; empty without facts."""
    if not facts:
        return ""
    head = ["Changed since you were last told:"] if changed else []
    return "\n".join(["<environment>", *head, *(f"{f.name}: {f.text}" for f in facts), "</environment>"])


def with_environment(
    message: UserMessage, facts: Sequence[EnvironmentFact], earlier: Sequence[EnvironmentFact] = ()
) -> UserMessage:
    """Return the message with a block of facts first. `earlier`: facts that the model already has."""
    return with_preface(message, render_environment(facts, changed=bool(earlier)))


def with_preface(message: UserMessage, block: str) -> UserMessage:
    """Return the message with a block of Daiku's before its text; unchanged if the block is empty."""
    if not block:
        return message
    text, size = f"{block}\n\n{message.text}", len(block) + 2 + message.preface
    return message.model_copy(update={"text": text, "preface": size})


def nested_facts(
    facts: Sequence[EnvironmentFact], mode: Mode, folder: str = ""
) -> tuple[EnvironmentFact, ...]:
    """Return the facts for a nested run, without editor. `folder`: the copy it works in."""
    changes = {MODE: describe_stage_mode(mode)}
    changes |= {FOLDER: plain_name(folder)} if folder else {}
    omitted = (EDITOR, TOOLS, *((MODE,) if mode == "act" else ()), *((GIT,) if folder else ()))
    facts_left = (fact for fact in facts if fact.name not in omitted)
    return tuple(fact.model_copy(update={"text": changes.get(fact.name, fact.text)}) for fact in facts_left)


def describe_stage_mode(mode: Mode) -> str:
    """Return what the mode means for an agent that does one part of the work."""
    if mode == "act":
        return "act. Files may be changed and commands run, as far as your tools do that."
    return f"{mode}. You only read: changes of files and commands are refused."


def plain_name(name: str) -> str:
    """Return a name from the project as short, harmless data: no hidden characters, line ends, or tags."""
    escaped = show_hidden(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    escaped = escaped.replace("<", "\\u003c").replace("`", "\\u0060")
    return escaped if len(escaped) <= LONGEST_NAME else escaped[: LONGEST_NAME - 1] + "…"


MOST_OPEN = 10
"""Open files that are listed, at most."""
NO_GIT = "no repository"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Environment of a run.

    `git`: status, empty if unknown. `cursor`: `path:line` in the editor. `open_files`: relative paths, None
    without an editor. `needed_tools`: tools in addition to those offered.
    """

    today: date
    system: str
    folders: tuple[str, ...]
    seconds: int
    """Default timeout of a command in seconds."""
    git: str = ""
    open_files: tuple[str, ...] | None = None
    cursor: str = ""
    needed_tools: str = ""


def environment_facts(
    surroundings: Surroundings, policy: Policy, *, shell: bool, stage: bool = False
) -> tuple[EnvironmentFact, ...]:
    """Return all environment facts, in order.

    `shell`: the agent runs commands. `stage`: the agent does part of the work.
    """
    facts = (
        ("Date", f"{surroundings.today:%A, %Y-%m-%d}"),
        ("System", surroundings.system),
        (FOLDER, ", ".join(map(plain_name, surroundings.folders)) or "none is open"),
        ("Shell", _describe_shell(surroundings.seconds) if shell else ""),
        (GIT, surroundings.git),
        (EDITOR, _describe_editor(surroundings.open_files, surroundings.cursor)),
        ("Sandbox", _describe_sandbox(policy) if shell else ""),
        ("Approvals", _describe_approvals(policy)),
        ("Person", _describe_user(policy)),
        (MODE, describe_stage_mode(policy.mode) if stage else describe_mode(policy.mode)),
        (TOOLS, surroundings.needed_tools),
    )
    return tuple(EnvironmentFact(name=name, text=text) for name, text in facts if text)


def describe_mode(mode: Mode) -> str:
    """Return what the model may do in this mode, and how to end its turn."""
    match mode:
        case "act":
            return "act. Change files and run commands; do not ask whether to go on."
        case "plan":
            return (
                "plan. You only read: changes of files and commands are refused.\n"
                f"Look, propose a plan with {wire_name('plan/propose')}, then end your turn: the person decides."
            )
        case "ask":
            return (
                "ask. You only read: changes of files and commands are refused.\n"
                "Answer the question; where a change is wanted, say what you would change."
            )
        case _:
            assert_never(mode)


def format_git_state(porcelain: str) -> str:
    """Return the branch and the number of changes, from `git status --porcelain=v2 --branch`."""
    lines = porcelain.splitlines()
    head = {key: value for key, _, value in (line[2:].partition(" ") for line in lines if line[:2] == "# ")}
    branch, commit = head.get("branch.head", ""), head.get("branch.oid", "")
    name = (
        f"detached at {plain_name(commit[:10])}" if branch == "(detached)" else f"branch {plain_name(branch)}"
    )
    changed = sum(line[:2] in ("1 ", "2 ", "u ") for line in lines)
    untracked = sum(line[:2] == "? " for line in lines)
    counts = [f"{changed} changed" if changed else "", f"{untracked} not tracked" if untracked else ""]
    state = ", ".join(filter(None, counts)) or "clean"
    suffix = ", no commits yet" if commit == "(initial)" else ""
    return f"{name}{suffix}, {state}"


def _describe_shell(seconds: int) -> str:
    return f"bash in that folder; {seconds} s a command, or its `timeout`; nobody can type: use `--yes`"


def _describe_editor(open_files: Sequence[str] | None, cursor: str) -> str:
    if open_files is None:
        return ""
    names = ", ".join(map(plain_name, open_files[:MOST_OPEN])) or "none"
    more = f" and {len(open_files) - MOST_OPEN} more" if len(open_files) > MOST_OPEN else ""
    return f"open files: {names}{more}" + (f"; the cursor is at {plain_name(cursor)}" if cursor else "")


def _describe_sandbox(policy: Policy) -> str:
    if policy.approval_mode == "work":
        network = "refused"
    else:
        network = "allowed" if policy.network else "only with `network: true`"
    match policy.sandbox:
        case "on":
            return f"on: commands write only in the project and /tmp; internet {network}"
        case "off" | "missing":
            return "none: commands have all rights of the person's account"
        case "refused":
            return "wanted and not to be had here: no command runs"
        case _:
            assert_never(policy.sandbox)


def _describe_approvals(policy: Policy) -> str:
    settings = policy.approvals
    if policy.approval_mode == "work":
        return _describe_work_approvals(policy)
    commands = "commands in the sandbox without internet" if policy.approval_mode == "sandbox" else "commands"
    kinds: tuple[tuple[ApprovalKind, str, str, Answer], ...] = (
        ("read", "reading", "reading", settings.read),
        ("edit", "edits", "edits", settings.edit),
        ("command", commands, "commands (not those that only read)", settings.command),
        ("network", "internet", "internet", settings.network),
        ("mcp", "MCP tools", "MCP tools", settings.mcp),
    )
    answers = [
        (_effective_answer(policy, kind, setting), name, asked) for kind, name, asked, setting in kinds
    ]
    allowed = [name for answer, name, _ in answers if answer == "allow"]
    asked = [asked for answer, _, asked in answers if answer == "ask"]
    refused = [name for answer, name, _ in answers if answer == "deny"]
    if policy.is_unattended:
        asked, refused = [], [*asked, *refused]
    parts = (("allowed", allowed), ("the person is asked first", asked), ("refused", refused))
    return "; ".join(f"{head}: {', '.join(names)}" for head, names in parts if names)


def _describe_work_approvals(policy: Policy) -> str:
    """Return what a run on a work item may do without a user present."""
    hosts = ", ".join(map(plain_name, policy.hosts)) or "none"
    return (
        "allowed: reading, edits, commands in the sandbox; files of continuous integration: a person is asked;"
        f" refused: other protected files, files of secrets, commands with internet; hosts to read from: {hosts}"
    )


def _effective_answer(policy: Policy, kind: ApprovalKind, setting: Answer) -> Answer:
    if setting == "deny":
        return "deny"
    if kind == "network" and not policy.own:
        return "ask"
    if policy.covers(kind, contained=policy.is_contained):
        return "allow"
    return setting if policy.trusted else "ask"


def _describe_user(policy: Policy) -> str:
    if policy.is_unattended:
        return "nobody is there: ask nothing, decide yourself and say what you decided"
    return "is there and can be asked"
