"""Permission check of a tool call: deny, ask, or allow. Deny overrides ask, ask overrides allow."""

from __future__ import annotations

import hashlib
import json
import posixpath
from typing import assert_never

from daiku.dataclass import replace
from daiku.domain.config import Answer
from daiku.domain.events import ApprovalKind
from daiku.domain.runs import Mode
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.guard.rules.commands.judge import CommandRules, Judgement, judge, strip_cd
from daiku.guard.rules.policy import Policy, Verdict
from daiku.guard.rules.protected.addresses import parse_url
from daiku.guard.rules.protected.names import explain_hidden, explain_protection, holds_secrets
from daiku.guard.rules.referenced_paths import is_kept_output, touched_paths
from daiku.guard.rules.unwatched import (
    CONTAINED_TOOLS,
    UnwatchedCall,
    by_its_paths,
    explain_edit_effects,
    unwatched,
)
from daiku.texts.text import NO_TEXT, Text, joined, text

SHELL = "shell/run"
_READS_OUTPUTS = frozenset({"files/read", "search/text"})
OUTSIDE = text("guard.outside_text")
STRANGE = text("guard.strange_folder")


def verdict(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    """Return the verdict on one call of the tool that `spec` describes."""
    if policy.approval_mode == "work":
        return _judge_for_work_item(call, spec, policy)
    return _judge_for_any_run(call, spec, policy)


def _judge_for_work_item(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    """Return the verdict for a work item, which runs in its own copy without a user watching.

    Everything that any run denies is denied. Of the rest, whatever the copy and the sandbox contain is allowed.
    """
    ordinary = _judge_for_any_run(call, spec, replace(policy, approval_mode="ask", trusted=True))
    if ordinary.answer == "deny":
        return ordinary
    unwatched_call = _describe_command(call, policy) or by_its_paths(call, spec, policy)
    consented = spec.effect == "mcp" and policy.granted(ordinary.key) == "allow"
    return unwatched(call, spec, policy, replace(unwatched_call, consented=consented), ordinary)


def _describe_command(call: ToolCall, policy: Policy) -> UnwatchedCall | None:
    """Return what a command line shows about its call; None if there is no command line."""
    line = call.args.get("command")
    if call.tool != SHELL or not isinstance(line, str):
        return None
    stripped = strip_cd(line)
    folder = policy.real(stripped.folder) if stripped.folder else ""
    judgement = _judge_command(stripped.command, folder or "", call, policy)
    return UnwatchedCall(
        protected=judgement.why if judgement.protected else NO_TEXT,
        reads_secret=judgement.secret,
        network=policy.network or judgement.network or call.args.get("network", False) is not False,
    )


def _judge_command(command: str, folder: str, call: ToolCall, policy: Policy) -> Judgement:
    stdin = call.args.get("stdin")
    return judge(command, _build_rules(policy, folder), stdin if isinstance(stdin, str) else "")


def _judge_for_any_run(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    if refusal := _check_mode(spec, policy.mode):
        return Verdict("deny", refusal)
    match spec.effect:
        case "none" | "ask":
            return Verdict("allow", text("guard.changes_nothing"))
        case "plan":
            return _judge_plan(spec, policy)
        case "read":
            return _judge_read(call, policy)
        case "edit":
            return _judge_edit(call, policy)
        case "command":
            return _judge_command_call(call, policy)
        case "network":
            return _judge_network(call, spec, policy)
        case "mcp":
            return _judge_mcp(spec, policy)
        case "memory":
            return _judge_memory(policy)
        case _:
            assert_never(spec.effect)


def _check_mode(spec: ToolSpec, mode: Mode) -> Text:
    if mode == "act" or spec.effect in ("none", "ask", "read", "network", "memory"):
        return NO_TEXT
    if mode == "plan" and spec.effect == "plan":
        return NO_TEXT
    descriptions = {
        "edit": text("guard.changes_files"),
        "command": text("guard.runs_programs"),
        "mcp": text("guard.may_change_things"),
        "plan": text("guard.changes_the_plan"),
    }
    description = descriptions.get(spec.effect, text("guard.acts"))
    return text("guard.not_in_this_mode", tool=spec.name, does=description, mode=mode)


def _settle(
    kind: ApprovalKind,
    setting: Answer,
    key: str,
    why: Text,
    policy: Policy,
    *,
    ask: Text = NO_TEXT,
    sacred: bool = False,
    secret: bool = False,
    sends: bool | None = None,
    contained: bool = True,
    sandboxed: bool = False,
) -> Verdict:
    """Combine the verdicts in the common order.

    Denied by settings or user; always asked; sends data out after text from outside; approval level; distrust; allowed
    by user; allowed by settings.
    """
    if setting == "deny":
        return Verdict("deny", text("guard.settings_deny_kind", kind=kind), kind)
    grant = policy.granted(key) if key else None
    if grant == "reject":
        return Verdict("deny", text("guard.rejected_always"), kind, key)
    if sacred:
        return _ask_user(why, kind, policy)
    outside_reason = OUTSIDE if policy.tainted else NO_TEXT
    sends_out = kind == "network" if sends is None else sends
    if sends_out and (outside_reason or not (policy.own or grant)):
        reason = joined("clauses", [why, outside_reason or STRANGE])
        return Verdict("ask", reason, kind, "" if outside_reason else key)
    is_covered = policy.covers(kind, contained=sandboxed)
    if is_covered and not secret and (contained or not outside_reason):
        masked = kind == "network" or (kind == "command" and policy.approval_mode == "sandbox")
        return Verdict("allow", text("guard.granted_for_run"), kind, key, masked=masked, unseen=True)
    if not policy.trusted:
        return Verdict("ask", joined("clauses", [why, text("guard.untrusted")]), kind)
    if kind == "network" and outside_reason:
        return Verdict("ask", joined("clauses", [why, outside_reason]), kind)
    if grant == "allow":
        return Verdict("allow", text("guard.allowed_always"), kind, key)
    # In unattended runs the settings are the user's only permission.
    if setting == "allow" and not ask and (not outside_reason or policy.is_unattended):
        return Verdict("allow", text("guard.settings_allow"), kind, key, unseen=True)
    outside = outside_reason if setting == "allow" or is_covered else NO_TEXT
    return Verdict("ask", joined("clauses", [why, ask if ask != why else NO_TEXT, outside]), kind, key)


def _ask_user(why: Text, kind: ApprovalKind, policy: Policy) -> Verdict:
    if policy.is_unattended:
        reason = joined("clauses", [why, text("guard.needs_person")])
        return Verdict("deny", reason, kind, unattended=True)
    return Verdict("ask", why, kind)


def _judge_plan(spec: ToolSpec, policy: Policy) -> Verdict:
    if spec.name != "plan/approve":
        return Verdict("allow", text("guard.changes_only_plan"), "plan")
    return _settle("plan", "ask", "", text("guard.starts_plan"), policy)


def _judge_memory(policy: Policy) -> Verdict:
    """Return the verdict on storing a memory.

    The user decides if foreign text may be involved, as it affects later sessions.
    """
    why = text("guard.changes_memory")
    if not policy.tainted and (policy.own or not policy.roots or policy.approval_mode == "all"):
        return Verdict("allow", why, "memory")
    return _ask_user(joined("clauses", [why, OUTSIDE if policy.tainted else STRANGE]), "memory", policy)


def _judge_read(call: ToolCall, policy: Policy) -> Verdict:
    secret = next(
        (p for p in touched_paths(call) if holds_secrets(p) or holds_secrets(policy.real(p) or p)), None
    )
    if call.tool in _READS_OUTPUTS and policy.approvals.read != "deny" and _reads_only_outputs(call):
        return Verdict("allow", text("guard.own_output"), "read")
    if secret is None:
        return _settle(
            "read", policy.approvals.read, f"read:{call.tool}", text("guard.reads_workspace"), policy
        )
    why = joined("clauses", [text("guard.looks_secret", path=secret), text("guard.goes_to_model")])
    setting: Answer = "deny" if policy.approvals.read == "deny" else "ask"
    return _settle("read", setting, f"read:{policy.real(secret) or secret}", why, policy, secret=True)


def _reads_only_outputs(call: ToolCall) -> bool:
    """Return True if everything that is read is output of this session's commands, which the model already has."""
    paths = touched_paths(call)
    return bool(paths) and all(is_kept_output(path) for path in paths)


def _judge_edit(call: ToolCall, policy: Policy) -> Verdict:
    if why := _explain_protected(call, policy):
        return _settle("edit", policy.approvals.edit, "", why, policy, sacred=True)
    # An ordinary edit needs no reason, as the user sees the change.
    decision = _settle("edit", policy.approvals.edit, "edit", NO_TEXT, policy)
    is_requested = decision.answer == "ask" and policy.trusted and not policy.tainted and policy.pointed_at
    return Verdict("allow", text("guard.edit_asked_for"), "edit", "edit") if is_requested else decision


def _explain_protected(call: ToolCall, policy: Policy) -> Text:
    paths = touched_paths(call)
    for path in paths:
        real = policy.real(path)
        for name in {path, real or path}:
            if why := explain_protection(name) or (explain_hidden(name) if name == real else NO_TEXT):
                return text("guard.of_path", path=name, why=why)
    return explain_edit_effects(paths, call.args, policy.patch)


def _judge_network(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    url = call.args.get("url")
    if not isinstance(url, str):
        # The user chose the search engine, so no text can redirect a search.
        sends = None if spec.name not in ("web/search", "web/research") else False
        key = f"network:{spec.name}"
        return _settle(
            "network", policy.approvals.network, key, text("guard.reaches_network"), policy, sends=sends
        )
    address = parse_url(url)
    if isinstance(address, str):  # the tool reports the error too, and sends nothing
        why = joined("clauses", [text("guard.reaches_network"), address])
        return _settle("network", policy.approvals.network, "", why, policy)
    return _settle(
        "network",
        policy.approvals.network,
        f"network:{address.host}",
        text("guard.reaches_host", host=address.host),
        policy,
    )


def _judge_mcp(spec: ToolSpec, policy: Policy) -> Verdict:
    # A changed tool description needs a new approval.
    definition = json.dumps([spec.description, spec.parameters], sort_keys=True, ensure_ascii=False)
    key = f"mcp:{spec.name}#{hashlib.sha256(definition.encode()).hexdigest()[:12]}"
    why = text("guard.other_program", tool=spec.name)
    # Text from a server can only make the model call the same server, so only its own text goes back.
    server = spec.name.partition("/")[0]
    is_same_server = bool(policy.foreign) and all(name.partition("/")[0] == server for name in policy.foreign)
    return _settle("mcp", policy.approvals.mcp, key, why, policy, contained=is_same_server)


def _judge_command_call(call: ToolCall, policy: Policy) -> Verdict:
    line = call.args.get("command")
    if call.tool != SHELL or not isinstance(line, str):  # git/commit and plug-ins have no command line
        return _judge_opaque(call, policy)
    if policy.sandbox == "refused":
        return Verdict("deny", text("guard.no_sandbox_strict"), "command")
    stripped = strip_cd(line)
    if stripped.refusal:  # the tool reports the error, and runs nothing
        return Verdict("allow", stripped.refusal)
    folder = policy.real(stripped.folder) if stripped.folder else ""
    if folder is None:
        return Verdict("deny", text("guard.outside_workspace", path=stripped.folder))
    if call.args.get("sandbox") is False:
        policy = replace(policy, sandbox="off" if policy.sandbox == "off" else "missing")
    judgement = _judge_command(stripped.command, folder, call, policy)
    network = judgement.network or call.args.get("network") is True
    # If foreign text may have asked for it, network access in the settings is not enough.
    kind: ApprovalKind = "network" if network and (policy.tainted or not policy.network) else "command"
    if judgement.answer == "deny":
        return Verdict("deny", judgement.why, kind)
    if policy.approvals.command == "deny":
        return Verdict("deny", text("guard.settings_deny_commands"), kind)
    return replace(_settle_command(call, judgement, kind, policy), outside=network)


def _judge_opaque(call: ToolCall, policy: Policy) -> Verdict:
    """Return the verdict on a tool that runs something itself: only the paths that it names can be checked."""
    setting, why = policy.approvals.command, text("guard.runs", names=call.tool)
    if protected := _explain_protected(call, policy):
        return _settle("command", setting, "", joined("clauses", [why, protected]), policy, sacred=True)
    contained = call.tool in CONTAINED_TOOLS
    return _settle("command", setting, f"command:{call.tool}", why, policy, contained=contained)


def _settle_command(call: ToolCall, judgement: Judgement, kind: ApprovalKind, policy: Policy) -> Verdict:
    setting = policy.approvals.network if kind == "network" else policy.approvals.command
    is_unsandboxed = policy.sandbox == "missing"
    leaves_sandbox = call.args.get("sandbox") is False and is_unsandboxed
    if judgement.protected or leaves_sandbox:
        why = text("guard.leaves_sandbox") if leaves_sandbox else judgement.why
        return _settle(kind, setting, "", why, policy, sacred=True)
    has_no_stdin = not call.args.get("stdin")
    is_plain_command = kind == "command" or (not policy.tainted and call.args.get("network") is not True)
    only_reads = judgement.read_only and policy.own
    if (
        judgement.answer == "allow"
        and is_plain_command
        and has_no_stdin
        and policy.trusted
        and (only_reads or not is_unsandboxed)
    ):
        return Verdict("allow", judgement.why, kind, unseen=True)
    mark = ("network:" if kind == "network" else "") + ("unsandboxed:" if is_unsandboxed else "") + "command:"
    # The key is the complete line including its folder, as the same command does other things elsewhere.
    key = f"{mark}{str(call.args.get('command')).strip()}" if has_no_stdin and judgement.key else ""
    why = judgement.why
    if kind == "network":
        why = text("guard.with_network", why=why)
    if is_unsandboxed:
        why = joined("clauses", [why, text("guard.no_sandbox")])
    review_reason = NO_TEXT if judgement.understood and not is_unsandboxed else why
    if policy.approval_mode == "sandbox" and kind == "command" and not policy.is_contained:
        why = joined("clauses", [why, text("guard.level_needs_sandbox")])
    # Approval mode `all` still covers pip install after a web page, as it uses the index in the user's settings.
    configured = (
        judgement.configured and policy.own and policy.approval_mode == "all" and policy.sandbox == "on"
    )
    decision = _settle(
        *(kind, setting, key, why, policy),
        ask=review_reason,
        secret=judgement.secret,
        sends=False if configured else None,
        contained=policy.is_contained or configured,
        sandboxed=policy.is_contained,
    )
    is_foreground = not (call.args.get("background") or call.args.get("terminal"))
    can_try = (
        decision.answer == "ask"
        and kind == "command"
        and policy.is_contained
        and policy.trusted
        and policy.own
    )
    return replace(decision, tries=can_try and is_foreground and not judgement.secret)


def _build_rules(policy: Policy, folder: str) -> CommandRules:
    folder_path = posixpath.join(policy.roots[0], folder) if policy.roots and folder else ""
    return CommandRules(
        resolve=(lambda path: policy.real(posixpath.join(folder_path, path))) if folder_path else policy.real,
        closed=(lambda path: policy.closed(posixpath.join(folder_path, path)))
        if folder_path
        else policy.closed,
        allow=policy.approvals.commands_allow,
        deny=policy.approvals.commands_deny,
        roots=policy.roots,
        folder=folder_path,
        home=policy.home,
        contained=policy.sandbox == "on",
        own=policy.own,
    )
