"""The verdict on a call in a run on a work item, which nobody watches, and the check of an edit by its effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.domain.work.patches import Patch
from daiku.guard.rules.policy import Policy, Verdict
from daiku.guard.rules.protected.addresses import parse_url
from daiku.guard.rules.protected.effects import explain_new_effects, explain_patch_effects
from daiku.guard.rules.protected.names import explain_protection, holds_secrets, is_pipeline
from daiku.guard.rules.referenced_paths import is_kept_output, string_arguments, touched_paths
from daiku.texts.text import NO_TEXT, Text, text


def explain_edit_effects(paths: Sequence[str], args: JsonValue, patch: Patch | None) -> Text:
    """Return what an edit makes tools do, empty if nothing.

    Read from its `patch`, or from its arguments if the patch is unknown.
    """
    if patch is not None:
        return explain_patch_effects(patch)
    parts = [part for _, value in string_arguments(args) for part in _list_possible_texts(value)]
    for path in paths:
        if why := next(filter(None, (explain_new_effects(path, part) for part in parts)), NO_TEXT):
            return text("guard.of_path", path=path, why=why)
    return NO_TEXT


def _list_possible_texts(value: str) -> tuple[str, ...]:
    """Return possible file contents for an argument that is a complete text, a part of one, or a patch."""
    added = "\n".join(line[1:] for line in value.splitlines() if line.startswith("+"))
    return (value, '{"scripts":{' + value, added)


CONTAINED_TOOLS = frozenset({"git/commit"})
"""Tools that run programs, and can reach nothing but this machine whatever they are told."""
WHOLE_COPY = frozenset(
    {"files/list", "git/diff", "git/log", "git/status", "search/map", "search/symbols", "search/text"}
)
"""Tools of ours that may be called without a path: they then look at the item's copy and at nothing else."""
PERSONAL = frozenset({"memory/search"})
"""Tools that change nothing and tell what a person had kept for themselves: an item's comments are read by others."""


@dataclass(frozen=True, slots=True)
class UnwatchedCall:
    """Facts about a call that its verdict depends on, apart from the policy.

    `protected`: why a place that it changes is protected, empty where none is. `pipeline`: it changes what a server
    runs by itself. `reads_secret`: it would show the text of a file that looks secret. `outside`: the first path that
    lies in no folder of the item's. `unnamed`: the call names no path. `network`: a command would be given the
    network. `consented`: the person allowed this very tool for always.
    """

    protected: Text = NO_TEXT
    pipeline: bool = False
    reads_secret: bool = False
    outside: str = ""
    unnamed: bool = False
    network: bool = False
    consented: bool = False


def unwatched(
    call: ToolCall, spec: ToolSpec, policy: Policy, asked: UnwatchedCall, found: Verdict
) -> Verdict:
    """Return the verdict on a call in an unattended run.

    `found` is the verdict of an attended run. `ask` pauses the item until a user has answered; a call that nobody may
    approve remotely is denied.
    """
    match spec.effect:
        case "none" if call.tool in PERSONAL:
            return _denied(text("guard.work_recall"), found)
        case "none" | "ask" | "plan":
            return Verdict("allow", found.why, found.kind)
        case "read":
            return _read(call, asked, found)
        case "edit":
            return _unnamed(call, found) if asked.unnamed else _change(asked, found)
        case "command":
            return _command(call, policy, asked, found)
        case "network":
            return _network(call, policy, found)
        case "mcp":
            return _allowed(found) if asked.consented else _denied(text("guard.work_mcp"), found)
        case "memory":
            return _denied(text("guard.work_memory"), found)
        case _:
            assert_never(spec.effect)


def by_its_paths(call: ToolCall, spec: ToolSpec, policy: Policy) -> UnwatchedCall:
    """Return the verdict that follows from the paths `call` names and the files they resolve to."""
    named = touched_paths(call)
    paths = [path for path in named if not is_kept_output(path)]
    pairs = [(path, policy.real(path) or path) for path in paths]
    secret = [any(map(holds_secrets, pair)) for pair in pairs]
    # An edit tells nothing of a secret file unless it gives its text a name that no longer looks secret.
    shown = any(secret) and not (spec.effect == "edit" and all(secret))
    return UnwatchedCall(
        protected=next(filter(None, (_why_kept(pair) for pair in pairs)), NO_TEXT)
        or explain_edit_effects(paths, call.args, policy.patch),
        pipeline=any(is_pipeline(name) for pair in pairs for name in pair if not name.startswith("/")),
        reads_secret=shown,
        outside=next((path for path in paths if policy.real(path) is None), ""),
        unnamed=not named,
    )


def _why_kept(names: tuple[str, str]) -> Text:
    """Why nobody may have the place of these names changed from afar; empty where somebody may."""
    for name in names:
        if why := NO_TEXT if is_pipeline(name) else explain_protection(name):
            return text("guard.of_path", path=name, why=why)
    return NO_TEXT


def _read(call: ToolCall, asked: UnwatchedCall, found: Verdict) -> Verdict:
    if asked.unnamed and call.tool not in WHOLE_COPY:
        return _unnamed(call, found)
    if asked.outside:
        return _denied(text("guard.work_outside", path=asked.outside), found)
    return _denied(text("guard.work_secret"), found) if asked.reads_secret else _allowed(found)


def _unnamed(call: ToolCall, found: Verdict) -> Verdict:
    """Return the verdict on a plug-in tool that reads or changes something without naming a path."""
    return _denied(text("guard.work_unnamed", tool=call.tool), found)


def _change(asked: UnwatchedCall, found: Verdict) -> Verdict:
    if asked.outside:
        return _denied(text("guard.work_outside", path=asked.outside), found)
    if asked.protected:
        return _denied(asked.protected, found)
    if asked.reads_secret:
        return _denied(text("guard.work_secret"), found)
    if asked.pipeline:
        return Verdict("ask", text("guard.work_pipeline"), found.kind)
    return _allowed(found)


def _command(call: ToolCall, policy: Policy, asked: UnwatchedCall, found: Verdict) -> Verdict:
    if call.tool in CONTAINED_TOOLS:
        return _change(asked, found)
    named = isinstance(call.args.get("command"), str)
    if call.tool != "shell/run" or not named:  # what a plug-in runs by itself is in no sandbox of ours
        return _denied(text("guard.work_opaque", tool=call.tool), found)
    if policy.sandbox != "on" or call.args.get("sandbox", True) is not True:
        return _denied(text("guard.work_sandbox"), found)
    if asked.network or found.kind == "network":
        return _denied(text("guard.work_no_network"), found)
    if asked.protected:
        return _denied(asked.protected, found)
    return _denied(text("guard.work_secret"), found) if asked.reads_secret else _allowed(found)


def _network(call: ToolCall, policy: Policy, found: Verdict) -> Verdict:
    url = call.args.get("url")
    place = parse_url(url) if isinstance(url, str) else None
    if place is None or isinstance(place, str) or not policy.may_reach(place.host):
        return _denied(text("guard.work_host"), found)
    return Verdict("allow", text("guard.work_allows"), found.kind, outside=True)


def _allowed(found: Verdict) -> Verdict:
    return Verdict("allow", text("guard.work_allows"), found.kind, outside=found.outside, unseen=True)


def _denied(why: Text, found: Verdict) -> Verdict:
    return Verdict("deny", why, found.kind)
