"""Decide on a tool call: deny, ask or allow. Deny overrides ask, ask overrides allow, the person the model."""

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
from daiku.guard.rules.edit_effects import why_edit_matters
from daiku.guard.rules.policy import Policy, Verdict
from daiku.guard.rules.protected.addresses import parse_url
from daiku.guard.rules.protected.paths import holds_secrets, why_hidden, why_protected
from daiku.guard.rules.referenced_paths import is_kept_output, touched_paths
from daiku.guard.rules.unwatched import CONTAINED_TOOLS, UnwatchedCall, by_its_paths, unwatched
from daiku.texts.text import NO_TEXT, Text, joined, text

SHELL = "shell/run"
_READS_OUTPUTS = frozenset({"files/read", "search/text"})
OUTSIDE = text("guard.outside_text")
STRANGE = text("guard.strange_folder")


def verdict(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    """The verdict on one call of the tool that `spec` describes."""
    if policy.approval_mode == "work":
        return _of_work_item(call, spec, policy)
    return _of_any_run(call, spec, policy)


def _of_work_item(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    """The verdict where an item is worked in a copy of its own and no person watches: what is refused in every run is
    refused here; of the rest what the copy and the sandbox hold in is allowed."""
    found = _of_any_run(call, spec, replace(policy, approval_mode="ask", trusted=True))
    if found.answer == "deny":
        return found
    asked = _of_command(call, policy) or by_its_paths(call, spec, policy)
    consented = spec.effect == "mcp" and policy.granted(found.key) == "allow"
    return unwatched(call, spec, policy, replace(asked, consented=consented), found)


def _of_command(call: ToolCall, policy: Policy) -> UnwatchedCall | None:
    """What a command line says of its call; None where there is none."""
    line = call.args.get("command")
    if call.tool != SHELL or not isinstance(line, str):
        return None
    stripped = strip_cd(line)
    folder = policy.real(stripped.folder) if stripped.folder else ""
    judged = _judged(stripped.command, folder or "", call, policy)
    return UnwatchedCall(
        protected=judged.why if judged.protected else NO_TEXT,
        reads_secret=judged.secret,
        network=policy.network or judged.network or call.args.get("network", False) is not False,
    )


def _judged(command: str, folder: str, call: ToolCall, policy: Policy) -> Judgement:
    stdin = call.args.get("stdin")
    return judge(command, _rules(policy, folder), stdin if isinstance(stdin, str) else "")


def _of_any_run(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    if refusal := _refused_by_mode(spec, policy.mode):
        return Verdict("deny", refusal)
    match spec.effect:
        case "none" | "ask":
            return Verdict("allow", text("guard.changes_nothing"))
        case "plan":
            return _plan(spec, policy)
        case "read":
            return _read(call, policy)
        case "edit":
            return _edit(call, policy)
        case "command":
            return _command(call, policy)
        case "network":
            return _network(call, spec, policy)
        case "mcp":
            return _mcp(spec, policy)
        case "memory":
            return _memory(policy)
        case _:
            assert_never(spec.effect)


def _refused_by_mode(spec: ToolSpec, mode: Mode) -> Text:
    if mode == "act" or spec.effect in ("none", "ask", "read", "network", "memory"):
        return NO_TEXT
    if mode == "plan" and spec.effect == "plan":
        return NO_TEXT
    does = {
        "edit": text("guard.changes_files"),
        "command": text("guard.runs_programs"),
        "mcp": text("guard.may_change_things"),
        "plan": text("guard.changes_the_plan"),
    }
    does_it = does.get(spec.effect, text("guard.acts"))
    return text("guard.not_in_this_mode", tool=spec.name, does=does_it, mode=mode)


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
    """Apply the common order: denied by settings or user; always asked; sends data out after text from outside; approval
    level; distrust; allowed by user; allowed by settings.

    `ask` is a reason why a setting alone cannot allow it; `sacred` calls ask whatever was granted, `secret` ones
    unless this very file was. `sends`: it can carry data to a place that a text named (None: as every call of the
    network can). `contained`: nothing but what the person set up can carry data out; only such calls are covered by
    the approval level after text from outside. `sandboxed`: it runs in the sandbox without network.
    """
    if setting == "deny":
        return Verdict("deny", text("guard.settings_deny_kind", kind=kind), kind)
    answered = policy.granted(key) if key else None
    if answered == "reject":
        return Verdict("deny", text("guard.rejected_always"), kind, key)
    if sacred:
        return _ask_a_person(why, kind, policy)
    outside = OUTSIDE if policy.tainted else NO_TEXT
    sends_out = kind == "network" if sends is None else sends
    if sends_out and (outside or not (policy.own or answered)):
        reason = joined("clauses", [why, outside or STRANGE])
        return Verdict("ask", reason, kind, "" if outside else key)
    covered = policy.covers(kind, contained=sandboxed)
    if covered and not secret and (contained or not outside):
        masked = kind == "network" or (kind == "command" and policy.approval_mode == "sandbox")
        return Verdict("allow", text("guard.granted_for_run"), kind, key, masked=masked, unseen=True)
    if not policy.trusted:
        return Verdict("ask", joined("clauses", [why, text("guard.untrusted")]), kind)
    if kind == "network" and outside:
        return Verdict("ask", joined("clauses", [why, outside]), kind)
    if answered == "allow":
        return Verdict("allow", text("guard.allowed_always"), kind, key)
    # Where nobody is there, the settings are the only word that a person has left.
    if setting == "allow" and not ask and (not outside or policy.is_unattended):
        return Verdict("allow", text("guard.settings_allow"), kind, key, unseen=True)
    told = setting == "allow" or covered
    reasons = joined("clauses", [why, ask if ask != why else NO_TEXT, outside if told else NO_TEXT])
    return Verdict("ask", reasons, kind, key)


def _ask_a_person(why: Text, kind: ApprovalKind, policy: Policy) -> Verdict:
    if policy.is_unattended:
        reason = joined("clauses", [why, text("guard.needs_person")])
        return Verdict("deny", reason, kind, unattended=True)
    return Verdict("ask", why, kind)


def _plan(spec: ToolSpec, policy: Policy) -> Verdict:
    if spec.name != "plan/approve":
        return Verdict("allow", text("guard.changes_only_plan"), "plan")
    return _settle("plan", "ask", "", text("guard.starts_plan"), policy)


def _memory(policy: Policy) -> Verdict:
    """Where a stranger's text may stand behind it, the person decides: it would speak in every later session."""
    why = text("guard.changes_memory")
    if not policy.tainted and (policy.own or not policy.roots or policy.approval_mode == "all"):
        return Verdict("allow", why, "memory")
    return _ask_a_person(joined("clauses", [why, OUTSIDE if policy.tainted else STRANGE]), "memory", policy)


def _read(call: ToolCall, policy: Policy) -> Verdict:
    secret = next(
        (p for p in touched_paths(call) if holds_secrets(p) or holds_secrets(policy.real(p) or p)), None
    )
    if call.tool in _READS_OUTPUTS and policy.approvals.read != "deny" and _only_outputs(call):
        return Verdict("allow", text("guard.own_output"), "read")
    if secret is None:
        return _settle(
            "read", policy.approvals.read, f"read:{call.tool}", text("guard.reads_workspace"), policy
        )
    why = joined("clauses", [text("guard.looks_secret", path=secret), text("guard.goes_to_model")])
    setting: Answer = "deny" if policy.approvals.read == "deny" else "ask"
    return _settle("read", setting, f"read:{policy.real(secret) or secret}", why, policy, secret=True)


def _only_outputs(call: ToolCall) -> bool:
    """True where all that is read is what a command of this session printed: the model was given it already."""
    paths = touched_paths(call)
    return bool(paths) and all(is_kept_output(path) for path in paths)


def _edit(call: ToolCall, policy: Policy) -> Verdict:
    if why := _touches_protected(call, policy):
        return _settle("edit", policy.approvals.edit, "", why, policy, sacred=True)
    # An edit like any other needs no reason: whoever is asked sees the change.
    settled = _settle("edit", policy.approvals.edit, "edit", NO_TEXT, policy)
    asked_for = settled.answer == "ask" and policy.trusted and not policy.tainted and policy.pointed_at
    return Verdict("allow", text("guard.edit_asked_for"), "edit", "edit") if asked_for else settled


def _touches_protected(call: ToolCall, policy: Policy) -> Text:
    paths = touched_paths(call)
    for path in paths:
        real = policy.real(path)
        for name in {path, real or path}:
            if why := why_protected(name) or (why_hidden(name) if name == real else NO_TEXT):
                return text("guard.of_path", path=name, why=why)
    return why_edit_matters(paths, call.args, policy.patch)


def _network(call: ToolCall, spec: ToolSpec, policy: Policy) -> Verdict:
    url = call.args.get("url")
    if not isinstance(url, str):
        # The search engine is the person's choice: nothing that a text asks for goes anywhere else.
        sends = None if spec.name not in ("web/search", "web/research") else False
        key = f"network:{spec.name}"
        return _settle(
            "network", policy.approvals.network, key, text("guard.reaches_network"), policy, sends=sends
        )
    place = parse_url(url)
    if isinstance(place, str):  # the tool says so too, and goes nowhere
        why = joined("clauses", [text("guard.reaches_network"), place])
        return _settle("network", policy.approvals.network, "", why, policy)
    return _settle(
        "network",
        policy.approvals.network,
        f"network:{place.host}",
        text("guard.reaches_host", host=place.host),
        policy,
    )


def _mcp(spec: ToolSpec, policy: Policy) -> Verdict:
    # A server that changes what a tool says it does needs a new yes.
    said = json.dumps([spec.description, spec.parameters], sort_keys=True, ensure_ascii=False)
    key = f"mcp:{spec.name}#{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    why = text("guard.other_program", tool=spec.name)
    # What a server said can only make the model call the same server: its own text goes back to it.
    server = spec.name.partition("/")[0]
    same = bool(policy.foreign) and all(name.partition("/")[0] == server for name in policy.foreign)
    return _settle("mcp", policy.approvals.mcp, key, why, policy, contained=same)


def _command(call: ToolCall, policy: Policy) -> Verdict:
    line = call.args.get("command")
    if call.tool != SHELL or not isinstance(line, str):  # git/commit and plug-ins: no command line to judge
        return _opaque(call, policy)
    if policy.sandbox == "refused":
        return Verdict("deny", text("guard.no_sandbox_strict"), "command")
    stripped = strip_cd(line)
    if stripped.refusal:  # the tool says so, and runs nothing
        return Verdict("allow", stripped.refusal)
    folder = policy.real(stripped.folder) if stripped.folder else ""
    if folder is None:
        return Verdict("deny", text("guard.outside_workspace", path=stripped.folder))
    if call.args.get("sandbox") is False:
        policy = replace(policy, sandbox="off" if policy.sandbox == "off" else "missing")
    judged = _judged(stripped.command, folder, call, policy)
    network = judged.network or call.args.get("network") is True
    # Where a stranger's text may have asked for it, the settings' network is not enough of a yes.
    kind: ApprovalKind = "network" if network and (policy.tainted or not policy.network) else "command"
    if judged.answer == "deny":
        return Verdict("deny", judged.why, kind)
    if policy.approvals.command == "deny":
        return Verdict("deny", text("guard.settings_deny_commands"), kind)
    return replace(_settle_command(call, judged, kind, policy), outside=network)


def _opaque(call: ToolCall, policy: Policy) -> Verdict:
    """A tool that runs something by itself: what it is told cannot be judged, only what it names."""
    setting, why = policy.approvals.command, text("guard.runs", names=call.tool)
    if protected := _touches_protected(call, policy):
        return _settle("command", setting, "", joined("clauses", [why, protected]), policy, sacred=True)
    contained = call.tool in CONTAINED_TOOLS
    return _settle("command", setting, f"command:{call.tool}", why, policy, contained=contained)


def _settle_command(call: ToolCall, judged: Judgement, kind: ApprovalKind, policy: Policy) -> Verdict:
    setting = policy.approvals.network if kind == "network" else policy.approvals.command
    bare = policy.sandbox == "missing"
    leaves = call.args.get("sandbox") is False and bare
    if judged.protected or leaves:
        why = text("guard.leaves_sandbox") if leaves else judged.why
        return _settle(kind, setting, "", why, policy, sacred=True)
    plain = not call.args.get("stdin")
    told = kind == "command" or (not policy.tainted and call.args.get("network") is not True)
    reads = judged.read_only and policy.own
    if judged.answer == "allow" and told and plain and policy.trusted and (reads or not bare):
        return Verdict("allow", judged.why, kind, unseen=True)
    mark = ("network:" if kind == "network" else "") + ("unsandboxed:" if bare else "") + "command:"
    # The whole line is the key, its folder too: the same words do other things elsewhere.
    key = f"{mark}{str(call.args.get('command')).strip()}" if plain and judged.key else ""
    why = judged.why
    if kind == "network":
        why = text("guard.with_network", why=why)
    if bare:
        why = joined("clauses", [why, text("guard.no_sandbox")])
    doubt = NO_TEXT if judged.understood and not bare else why
    if policy.approval_mode == "sandbox" and kind == "command" and not policy.is_contained:
        why = joined("clauses", [why, text("guard.level_needs_sandbox")])
    # The level `all` still means pip install after the first page: it goes where the user's settings say.
    configured = judged.configured and policy.own and policy.approval_mode == "all" and policy.sandbox == "on"
    settled = _settle(
        *(kind, setting, key, why, policy),
        ask=doubt,
        secret=judged.secret,
        sends=False if configured else None,
        contained=policy.is_contained or configured,
        sandboxed=policy.is_contained,
    )
    waits = not (call.args.get("background") or call.args.get("terminal"))
    tries = (
        settled.answer == "ask"
        and kind == "command"
        and policy.is_contained
        and policy.trusted
        and policy.own
    )
    return replace(settled, tries=tries and waits and not judged.secret)


def _rules(policy: Policy, folder: str) -> CommandRules:
    here = posixpath.join(policy.roots[0], folder) if policy.roots and folder else ""
    return CommandRules(
        resolve=(lambda path: policy.real(posixpath.join(here, path))) if here else policy.real,
        closed=(lambda path: policy.closed(posixpath.join(here, path))) if here else policy.closed,
        allow=policy.approvals.commands_allow,
        deny=policy.approvals.commands_deny,
        roots=policy.roots,
        folder=here,
        home=policy.home,
        contained=policy.sandbox == "on",
        own=policy.own,
    )
