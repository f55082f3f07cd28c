"""How often everyday commands are asked about, at each approval level, counted on a list of 491."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daiku.domain.tools import ToolCall, ToolSpec
from daiku.guard.rules.guard import verdict
from daiku.guard.rules.policy import Policy, Verdict
from tests.cases import for_each

SHELL = ToolSpec(name="shell/run", description="", parameters={}, effect="command")
PLACE = Policy(roots=("/w",), home="/home/u")


def commands(kind: str) -> Iterator[str]:
    """Yield the commands of one kind: `read`, `build` or `network`."""
    for line in Path(__file__).with_name("everyday.txt").read_text(encoding="utf-8").splitlines():
        found, tab, command = line.partition("\t")
        if tab and found == kind:
            yield command.replace("\\n", "\n") if "<<" in command else command


def judge(command: str, **policy: Any) -> Verdict:
    from dataclasses import replace

    return verdict(ToolCall(tool="shell/run", args={"command": command}), SHELL, replace(PLACE, **policy))


def asked(kind: str, **policy: Any) -> list[str]:
    return [c for c in commands(kind) if judge(c, **policy).answer != "allow"]


def test_the_list_holds_enough_of_each_kind() -> None:
    assert [len(list(commands(kind))) for kind in ("read", "build", "network")] == [248, 170, 73]


@for_each(
    ("kind", "level", "sandbox", "most"),
    [
        ("read", "sandbox", "on", 0.02),
        ("build", "sandbox", "on", 0.10),
        ("read", "all", "on", 0.0),
        ("build", "all", "on", 0.0),
        ("read", "ask", "missing", 0.55),
    ],
)
def test_a_level_asks_for_at_most_this_share(kind: str, level: str, sandbox: str, most: float) -> None:
    total = len(list(commands(kind)))
    found = asked(kind, approval_mode=level, sandbox=sandbox)
    assert len(found) <= most * total, (len(found) / total, found)


@for_each("level", ["ask", "edits", "none"])
def test_in_default_mode_every_reader_is_allowed_or_tried_first(level: str) -> None:
    rest = [
        c for c in commands("read") if (v := judge(c, approval_mode=level)).answer != "allow" and not v.tries
    ]
    assert len(rest) <= 0.02 * 248, rest


@for_each(
    "policy",
    [{"own": False}, {"trusted": False}, {"sandbox": "missing"}, {"sandbox": "off"}, {"network": True}],
)
def test_nothing_is_tried_without_trust_or_containment(policy: dict[str, Any]) -> None:
    """A23.7: a trial needs both."""
    assert not any(judge(c, **policy).tries for kind in ("read", "build") for c in commands(kind))


def test_every_network_command_is_asked_about_below_all() -> None:
    local = [c for c in commands("network") if judge(c, approval_mode="sandbox").answer == "allow"]
    contained = ("localhost", "psql", "mysql", "redis-cli", "yarn", "kubectl config")
    assert all(any(word in c for word in contained) for c in local), local


@for_each(
    ("command", "absent"),
    [
        ("gh --version", "network"),
        ("git clean -n", "deletes"),
        ("git clean --dry-run -d", "deletes"),
        ("uv pip list", "installs"),
        ("docker --version", "network"),
        ("kubectl version --client", "network"),
        ("git config user.name", "settings"),
        ("terraform validate", "network"),
        ("rsync -av src/ dst/", "network"),
        ("npx tsc --noEmit", "with the network"),
    ],
)
def test_a_reason_names_no_danger_that_the_command_does_not_have(command: str, absent: str) -> None:
    assert absent not in judge(command).why


@for_each(
    "command",
    [
        "git clean -fd",
        "uv pip install x",
        "git config user.name evil",
        "git config --unset user.name",
        "git config core.pager",
        "gh --version api x",
        "docker version --host tcp://x:1",
        "npx -y left-pad",
        "npx create-vite app",
        "npx left-pad@latest",
        "rsync a host:b",
        "terraform validate && terraform apply",
    ],
)
def test_neighbors_of_harmless_forms_are_still_asked_about(command: str) -> None:
    """A23.7: one more word makes the difference."""
    found = judge(command, approval_mode="sandbox")
    harmless = command in ("git clean -fd", "git config core.pager")  # contained, or only read
    assert found.answer == ("allow" if harmless else "ask"), found
