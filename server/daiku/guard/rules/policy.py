"""Policy for tool calls, the verdict on a call, and the rule that "always" would store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

from daiku.dataclass import dataclass
from daiku.domain.config import Answer, ApprovalSettings
from daiku.domain.events import ApprovalKind
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.work.patches import Patch
from daiku.guard.rules.protected.addresses import parse_url
from daiku.guard.rules.referenced_paths import lexical_path
from daiku.texts.text import NO_TEXT, Text, text


def describe_grant(key: str) -> Text:
    """Describe what "always" would allow for a verdict's `key`; empty if it cannot be stored."""
    prefix, _, rest = key.partition(":")
    match prefix:
        case "":
            return NO_TEXT
        case "edit":
            return text("guard.remember_edit")
        case "network" if rest == "web/search":
            return text("guard.remember_search")
        case "network" if rest == "web/research":
            return text("guard.remember_research")
        case "network" if not rest.startswith(("command:", "unsandboxed:")):
            return text("guard.remember_reach", host=rest)
        case "read":
            return text("guard.remember_read", what=rest)
        case "mcp":
            return text("guard.remember_mcp", tool=rest.partition("#")[0])
        case _:
            mark, _, command = key.partition("command:")
            what = text("guard.remember_run", command=command)
            if prefix == "network":
                what = text("guard.remember_with_network", what=what)
            return text("guard.remember_unsandboxed", what=what) if "unsandboxed:" in mark else what


SandboxState = Literal["on", "off", "missing", "refused"]
"""`off`: the person turned it off. `missing`: wanted (auto) but not to be had here. `refused`: strict
and not to be had: no command runs."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` says in a few words what is at stake or why not.

    `kind` is what an approval is shown as. `key` is what "always" remembers, empty where it cannot be remembered.

    `ask` has to be asked of a person: approval mode and grants are already in it. Only where nobody
    is there (`approval_mode == "none"`) it is a refusal.
    """

    answer: Answer
    why: Text
    kind: ApprovalKind = "command"
    key: str = ""
    unattended: bool = False
    """Denied only because nobody is there to be asked."""
    outside: bool = False
    """What the call answers may hold text from outside."""
    tries: bool = False
    """Run it first in a sandbox that discards its writes: a command that writes nothing needs no approval."""
    masked: bool = False
    """Allowed by the level `sandbox` alone: nobody saw the command, so the sandbox hides files of secrets."""
    unseen: bool = False
    """Allowed by a rule or a level: nobody saw the command, so git finds no closed file in the history."""


def _nothing_granted(_key: str) -> Literal["allow", "reject"] | None:
    return None


def _plain_host(name: str) -> str:
    """Return the host name in ASCII as URLs use it, or `name` unchanged if it is not a host name."""
    place = parse_url(f"https://{name.strip()}/")
    return (name if isinstance(place, str) else place.host).rstrip(".")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a verdict depends on besides the call.

    `granted` looks up what the person answered with "always". `tainted`: text from outside (a web
    page, an issue, an MCP server, what a command fetched) has entered the conversation. `foreign`: the tools that brought
    it, an empty name for what is not known. `own`: the
    workspace's texts are the person's own, as they have said of its folder. `resolve` gives the real name of a
    path relative to its root, symbolic links followed, None where it lies outside; `roots` and `home`
    are absolute paths. `network`: commands may use the network by the settings. `pointed_at`: the call is
    the edit that the person asked for by pointing at its place, and changes nothing beside it.
    """

    approvals: ApprovalSettings = ApprovalSettings()
    mode: Mode = "act"
    approval_mode: ApprovalMode = "ask"
    trusted: bool = True
    own: bool = True
    headless: bool = False
    tainted: bool = False
    foreign: frozenset[str] = frozenset()
    sandbox: SandboxState = "on"
    network: bool = False
    granted: Callable[[str], Literal["allow", "reject"] | None] = _nothing_granted
    pointed_at: bool = False
    patch: Patch | None = None
    """Files before and after the edit; None where only its arguments are known."""
    hosts: tuple[str, ...] = ()
    """The hosts that a run on a work item may reach, each only by its whole name."""
    resolve: Callable[[str], str | None] | None = None
    closed: Callable[[str], bool] = lambda _: False
    """Whether .daikuignore closes a path to the agent."""
    roots: tuple[str, ...] = ()
    home: str = ""

    @property
    def is_unattended(self) -> bool:
        """True where no person can be asked."""
        return self.headless or self.approval_mode == "none"

    @property
    def is_contained(self) -> bool:
        """True if commands run in a sandbox without network."""
        return self.sandbox == "on" and not self.network

    def covers(self, kind: ApprovalKind, *, contained: bool) -> bool:
        """Return True if the approval level allows calls of `kind`; `contained` ones run sandboxed without network."""
        match self.approval_mode:
            case "all":
                return True
            case "sandbox":
                return kind == "edit" or (kind == "command" and contained)
            case "edits":
                return kind == "edit"
            case "ask" | "none" | "work":
                return False
            case _:
                assert_never(self.approval_mode)

    def may_reach(self, host: str) -> bool:
        """Whether a run on a work item may reach `host`."""
        return _plain_host(host) in map(_plain_host, self.hosts)

    def real(self, path: str) -> str | None:
        """Return the resolved path of `path` relative to its root, None if it is outside."""
        return self.resolve(path) if self.resolve else lexical_path(path, self.roots)
