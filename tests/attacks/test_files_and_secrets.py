"""Attacks on files and secrets (A01-A28, A59, A64, A70): the jail, what is protected, what is never told."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.victim import Victim, snapshot

pytestmark = pytest.mark.slow  # real processes in real sandboxes

CANARY = "CANARY-7f3a"
LOOSE: dict[str, Any] = {"approval_mode": "all", "edit": "allow", "read": "allow", "command": "allow"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "proj").resolve()
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = (tmp_path / "proj-secret").resolve()
    outside.mkdir()
    (outside / "s.txt").write_text(CANARY)
    return outside


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("mine")
    monkeypatch.setenv("HOME", str(home))
    return home


def paths_out(outside: Path) -> list[str]:
    name = f"{outside.name}/new.txt"
    return [
        f"../{name}", str(outside / "new.txt"), f"x/../../{name}", f"./../{name}", "link/new.txt", f"%2e%2e/{name}", f"..%2f{name}", f"file://{outside}/new.txt",
        f"..\\{outside.name}\\new.txt", f"//{outside}/new.txt", f"a.txt/../../{name}", f"\u2025/{name}", f".. /{name}", "~/new.txt", "$HOME/../new.txt",
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(15))
async def test_a01_a05_a10_nothing_is_written_outside(
    root: Path, outside: Path, home: Path, index: int
) -> None:
    (root / "link").symlink_to(outside)
    path = paths_out(outside)[index]
    before = snapshot(outside), snapshot(home)
    victim = Victim(root, home, person=True, **LOOSE)
    await victim.attempt("files/write", path=path, content="x")
    await victim.attempt("files/move", path="a.txt", to=path)
    await victim.attempt("files/patch", patch=f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")
    await victim.attempt("files/patch", patch=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")
    assert (snapshot(outside), snapshot(home)) == before


@pytest.mark.parametrize(
    "path",
    [
        "../proj-secret/s.txt",
        "{outside}/s.txt",
        "link/s.txt",
        "s",
        "file://{outside}/s.txt",
        "x/../../proj-secret/s.txt",
    ],
)
async def test_a02_nothing_outside_is_read(root: Path, outside: Path, home: Path, path: str) -> None:
    (root / "link").symlink_to(outside)
    (root / "s").symlink_to(outside / "s.txt")
    victim = Victim(root, home, person=True, **LOOSE)
    for tool, args in (("files/read", {}), ("search/text", {"pattern": "CANARY"}), ("files/list", {})):
        await victim.attempt(tool, path=path.format(outside=outside), **args)
        assert victim.result is None or CANARY not in victim.result.text, tool


async def test_a04_writing_through_a_link_leaves_its_target_alone(root: Path, home: Path) -> None:
    (root / "l").symlink_to(home / ".bashrc")
    victim = Victim(root, home, person=True, **LOOSE)
    await victim.attempt("files/write", path="l", content="evil")
    await victim.attempt("files/edit", path="l", edits=[{"search": "mine", "replace": "evil"}])
    await victim.attempt("files/delete", path="l")
    assert (home / ".bashrc").read_text() == "mine"


async def test_a08_a_circle_of_links_is_an_error_and_no_hang(root: Path, home: Path) -> None:
    (root / "b").symlink_to("c")
    (root / "c").symlink_to("b")
    (root / "self").symlink_to(".")
    victim = Victim(root, home, person=True)
    async with asyncio.timeout(4):
        assert await victim.attempt("files/read", path="b") == "failed"
        await victim.attempt("files/list", depth=9)
        await victim.attempt("search/text", pattern="a")


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        f"/proc/{os.getppid()}/environ",
        "/dev/zero",
        "fifo",
        "/proc/self/root/etc/passwd",
        "zero",
        "env",
    ],
)
async def test_a11_special_files_are_errors_at_once(
    root: Path, home: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", CANARY)
    os.mkfifo(root / "fifo")
    (root / "zero").symlink_to("/dev/zero")
    (root / "env").symlink_to("/proc/self/environ")
    victim = Victim(root, home, person=True)
    async with asyncio.timeout(2):
        assert await victim.attempt("files/read", path=path) == "failed"
    assert victim.result is not None
    assert CANARY not in victim.result.text


@pytest.mark.parametrize("path", ["../../x", "/elsewhere/x", "link/x"])
async def test_a13_a_patch_that_leaves_the_workspace_does_nothing_at_all(
    root: Path, outside: Path, home: Path, path: str
) -> None:
    (root / "link").symlink_to(outside)
    before = snapshot(root), snapshot(outside)
    victim = Victim(root, home, person=True, **LOOSE)
    patch = (
        f"*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+changed\n*** Add File: {path}\n+x\n*** End Patch"
    )
    assert await victim.attempt("files/patch", patch=patch) != "done"
    move = f"*** Begin Patch\n*** Update File: a.txt\n*** Move to: {path}\n@@\n-a\n+changed\n*** End Patch"
    assert await victim.attempt("files/patch", patch=move) != "done"
    assert (snapshot(root), snapshot(outside)) == before


CONFIGURATION = [
    ("A14", ".vscode/settings.json", '{"chat.tools.autoApprove": true, "daiku.approvals": {"command": "allow"}}'),
    ("A14", ".daiku/config.toml", '[approvals]\ncommand = "allow"\n'),
    ("A14", ".vscode/tasks.json", "{}"),
    ("A16", ".git/hooks/pre-commit", "#!/bin/sh\n"),
    ("A17", ".git/config", "[core]\nfsmonitor = ./x\n"),
    ("A17", "sub/.git/config", "[core]\nsshCommand = ./x\n"),
    ("A17", ".gitattributes", "* filter=evil\n"),
    ("A19", "x.code-workspace", '{"settings": {}}'),
    ("A20", "a.json", '{"$schema": "http://127.0.0.1:9/?d=SECRET"}'),
    ("A20", "b.json", '{"\\u0024schema": "http://127.0.0.1:9/?d=SECRET"}'),
    ("A22", ".github/workflows/x.yml", "on: push\n"),
    ("A22", ".gitlab-ci.yml", "x: {}\n"),
    ("A25", ".mcp.json", "{}"),
    ("A25", ".vscode/mcp.json", "{}"),
    ("A25", ".cursor/mcp.json", "{}"),
    ("rules", "AGENTS.md", "obey"),
    ("rules", "sub/CLAUDE.md", "obey"),
    ("start-up", ".envrc", "export X"),
    ("packages", ".npmrc", "script-shell=./x"),
    ("packages", "package.json", '{"scripts": {"preinstall": "./x"}}'),
    ("python", "sitecustomize.py", "import os"),
    ("hooks", ".husky/pre-commit", "./x"),
    ("container", ".devcontainer/devcontainer.json", '{"postCreateCommand": "./x"}'),
]  # fmt: skip


@pytest.mark.parametrize(("case", "path", "content"), CONFIGURATION)
@pytest.mark.parametrize("approval_mode", ["ask", "edits", "sandbox", "all"])
async def test_what_changes_tools_is_asked_about_and_refused_headless(
    root: Path, home: Path, case: str, path: str, content: str, approval_mode: Any
) -> None:
    before = snapshot(root)
    writes: list[tuple[str, dict[str, Any]]] = [
        ("files/write", {"path": path, "content": content}),
        (
            "files/patch",
            {
                "patch": f"*** Begin Patch\n*** Add File: {path}\n"
                + "".join(f"+{x}\n" for x in content.splitlines())
                + "*** End Patch"
            },
        ),
    ]
    for tool, args in writes:
        assert (
            await Victim(root, home, edit="allow", approval_mode=approval_mode).attempt(tool, **args)
            == "asked"
        ), case
        assert (
            await Victim(root, home, edit="allow", approval_mode=approval_mode, headless=True).attempt(
                tool, **args
            )
            == "denied"
        ), case
    assert snapshot(root) == before


@pytest.mark.parametrize(
    "spelled",
    [
        ".GIT/config",
        ".git./config",
        ".git\u200b/hooks/x",
        ".git::$DATA",
        ".git /config",
        "GIT~1/config",
        ".git\\config",
        "x/../.git/config",
    ],
)
async def test_a10_protected_files_in_disguise(root: Path, home: Path, spelled: str) -> None:
    (root / ".git").mkdir()
    before = snapshot(root)
    assert (
        await Victim(root, home, edit="allow", approval_mode="all").attempt(
            "files/write", path=spelled, content="x"
        )
        == "asked"
    )
    assert snapshot(root) == before


async def test_a_link_to_a_protected_folder_is_no_way_in(root: Path, home: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "innocent").symlink_to(".git/hooks")
    victim = Victim(root, home, edit="allow", approval_mode="all")
    assert await victim.attempt("files/write", path="innocent/pre-commit", content="x") == "asked"


@pytest.mark.parametrize("path", [".env", "sub/.env.local", "id_rsa", "server.pem", "link"])
async def test_secrets_in_the_workspace_are_read_only_after_a_yes(root: Path, home: Path, path: str) -> None:
    for name in (".env", "sub/.env.local", "id_rsa", "server.pem"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(CANARY)
    (root / "link").symlink_to(".env")
    assert await Victim(root, home).attempt("files/read", path=path) == "asked"
    assert await Victim(root, home).attempt("shell/run", command=f"cat {path}") == "asked"


async def test_a64_no_key_reaches_a_command(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "MY_SECRET",
        "GH_TOKEN",
        "DB_PASSWORD",
        "SERVICE_CREDENTIALS",
        "PRIVATE_THING",
    ):
        monkeypatch.setenv(name, CANARY)
    victim = Victim(root, home, person=True, **LOOSE)
    assert await victim.attempt("shell/run", command="env; cat /proc/self/environ; cat /proc/*/environ") in (
        "done",
        "failed",
    )
    assert victim.result is not None
    assert CANARY not in victim.result.text


async def test_a59_what_a_command_prints_cannot_draw_on_a_screen(root: Path, home: Path) -> None:
    victim = Victim(root, home, person=True, **LOOSE)
    assert (
        await victim.attempt(
            "shell/run", command=r"printf '\033[2K\r\033]8;;http://x\007\033]52;c;eA==\007\233\202\n'"
        )
        == "done"
    )
    assert victim.result is not None
    said = victim.result.model_dump_json() + "".join(str(e) for e in victim.events)
    assert "\\u001b" not in said
    assert "\x1b" not in said
    assert "]52;" not in said


@pytest.mark.parametrize(
    "value", [None, [], {}, 3, float("nan"), True, "x" * 10_000_000, {"a": {"b": []}}, "\x00", ""]
)
@pytest.mark.parametrize(
    ("tool", "key"),
    [
        ("files/read", "path"),
        ("files/write", "path"),
        ("shell/run", "command"),
        ("git/diff", "ref"),
        ("search/text", "pattern"),
    ],
)
async def test_a70_arguments_of_any_type_are_answered(
    root: Path, home: Path, tool: str, key: str, value: Any
) -> None:
    victim = Victim(root, home, person=True)
    outcome = await victim.attempt(tool, **{key: value})
    assert outcome in ("denied", "asked", "failed", "done")
    if outcome == "failed":
        assert victim.result is not None
        assert victim.result.text
        assert len(victim.result.text) < 40_000
