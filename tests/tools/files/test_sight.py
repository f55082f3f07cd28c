"""What may be seen by naming it: ignored files and dependencies; and what stays closed by every door."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from daiku.domain.tools import ToolCall, ToolResult
from daiku.settings.config import Config
from daiku.tools.files.changing import build_file_tools
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace

REGISTRY = ToolRegistry((*build_file_tools(), *SEARCH_TOOLS))
CANARY = "CANARY-7f3a"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


async def call(root: Path, tool: str, **args: JsonValue) -> ToolResult:
    workspace = DiskWorkspace([root])
    context = ToolContext(
        session="s", run="r", call_id="c", workspace=workspace, config=Config(), emit=lambda event: None,
        checkpoints=CheckpointStore(root.parent / "checkpoints", workspace),
    )  # fmt: skip
    return await REGISTRY.call(ToolCall(tool=tool, args=args), context)


def every_door(path: str) -> list[tuple[str, dict[str, JsonValue]]]:
    """Calls that would show what is in `path`, or change it."""
    return [
        ("files/read", {"path": path}),
        ("files/list", {"path": path}),
        ("search/text", {"pattern": "CANARY", "path": path}),
        ("search/text", {"pattern": "CANARY", "path": path, "mode": "files"}),
        ("search/text", {"pattern": "C", "path": path, "mode": "count"}),
        ("search/text", {"pattern": "x^", "path": path, "context": 9}),
        ("files/write", {"path": path, "content": "mine"}),
        ("files/edit", {"path": path, "edits": [{"search": CANARY, "replace": "x"}]}),
        ("files/patch", {"patch": f"*** Begin Patch\n*** Update File: {path}\n-{CANARY}\n+x\n*** End Patch"}),
        ("files/move", {"path": path, "to": "seen.txt"}),
        ("files/delete", {"path": path}),
    ]


async def test_what_git_ignores_is_read_searched_and_listed_by_its_path_and_that_is_said(
    workspace: Path,
) -> None:
    write(workspace, **{
        ".gitignore": "build.log\nnode_modules/\ndist\n", "build.log": "one\nerror: two\n", "src/a.ts": "let error = 1\n",
        "node_modules/x/index.d.ts": "export declare const error: 1\n", "node_modules/x/y/deep.js": "error\n", "dist/o.js": "error\n",
    })  # fmt: skip
    assert (
        await call(workspace, "files/read", path="build.log")
    ).text == "1 | one\n2 | error: two\n[ignored by git]"
    assert "[ignored by git]" in (await call(workspace, "files/read", path="node_modules/x/index.d.ts")).text
    listed = (await call(workspace, "files/list", path="node_modules/x", depth=3)).text
    assert listed.split("\n") == [
        "node_modules/x/y/",
        "node_modules/x/y/deep.js",
        "node_modules/x/index.d.ts",
        "[ignored by git]",
    ]
    for path, hits in {"build.log": 1, "node_modules": 2, "node_modules/x": 2, "dist": 1}.items():
        found = (await call(workspace, "search/text", pattern="error", path=path)).text
        assert found.startswith("[ignored by git]\n")
        assert sum(line.partition(":")[0].isdigit() for line in found.split("\n")) == hits
    for path in ({}, {"path": "."}):
        assert (
            await call(workspace, "search/text", pattern="error", **path)
        ).text == "src/a.ts\n1:let error = 1"
    assert (await call(workspace, "search/text", pattern="error", glob="*.log")).text.startswith(
        "Nothing matches"
    )
    assert "log" not in (await call(workspace, "files/list", depth=9)).text.replace(".gitignore", "")


async def test_an_ignored_file_is_edited_by_its_path_and_dependencies_are_not(workspace: Path) -> None:
    write(
        workspace,
        **{
            ".gitignore": "local.ini\nnode_modules\n.venv\n",
            "local.ini": "a=1\n",
            "node_modules/x/i.js": "a=1\n",
        },
    )
    write(workspace, **{".venv/lib/python3.11/site-packages/p.py": "a=1\n", ".venv/pyvenv.cfg": ""})
    edit: JsonValue = [{"search": "a=1", "replace": "a=2"}]
    assert (await call(workspace, "files/edit", path="local.ini", edits=edit)).ok
    assert (workspace / "local.ini").read_text() == "a=2\n"
    for path in ("node_modules/x/i.js", ".venv/lib/python3.11/site-packages/p.py"):
        assert (await call(workspace, "files/read", path=path)).ok
        for tool, args in every_door(path)[6:]:
            refused = await call(workspace, tool, **args)
            assert "installed dependencies" in refused.text or "a=1" not in str(args), (tool, refused.text)
        assert (workspace / path).read_text() == "a=1\n"
        new = await call(workspace, "files/write", path=str(Path(path).parent / "new.js"), content="x")
        assert not new.ok
        assert not (workspace / path).with_name("new.js").exists()
    assert not (await call(workspace, "files/move", path="local.ini", to="node_modules/x/local.ini")).ok


@pytest.mark.parametrize(
    "path",
    [
        "private/key.txt", "build/private/key.txt", "./build/../private/key.txt", "build/.env", ".env", "build/id_rsa",
        "build/link.txt", "build/up", ".git/config", "build/PRIVATE.txt", "node_modules/p/private/key.txt",
    ],
)  # fmt: skip
async def test_what_is_closed_stays_closed_by_every_door(workspace: Path, path: str) -> None:
    write(workspace, **{
        ".gitignore": "build\n.env\nnode_modules\n", ".daikuignore": "private\nPRIVATE.txt\n", "private/key.txt": CANARY,
        "build/private/key.txt": CANARY, "build/.gitignore": "!private\n!.env\n", "build/.env": CANARY, ".env": CANARY,
        "build/id_rsa": CANARY, ".git/config": CANARY, "build/PRIVATE.txt": CANARY, "node_modules/p/private/key.txt": CANARY,
    })  # fmt: skip
    (workspace / "build/link.txt").symlink_to(workspace / ".env")
    (workspace / "build/up").symlink_to(workspace / "private")
    before = {p: p.read_bytes() for p in workspace.rglob("*") if p.is_file()}
    for tool, args in every_door(path):
        result = await call(workspace, tool, **args)
        assert CANARY not in result.text, tool
        assert not result.ok, (tool, args, result.text)
    for place in ("build", "node_modules", ".", "build/private/.."):
        for mode in ("content", "files", "count"):
            found = await call(workspace, "search/text", pattern=CANARY, path=place, mode=mode)
            assert found.text.startswith("Nothing matches"), found.text
    assert {p: p.read_bytes() for p in workspace.rglob("*") if p.is_file()} == before


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    write(
        folder,
        **{
            "s.txt": CANARY,
            "node_modules/x/i.js": "const inner = 1\n",
            "node_modules/x/.env": CANARY,
            "s/.npmrc": CANARY,
        },
    )
    (folder / "node_modules/x/out.txt").symlink_to(folder / "s.txt")
    (folder / "node_modules/x/up").symlink_to(folder)
    return folder


async def test_an_ignored_folder_that_leads_out_of_the_workspace_is_not_followed(
    workspace: Path, outside: Path
) -> None:
    write(workspace, **{".gitignore": "build\nnode_modules\n.venv\n"})
    (workspace / "build").symlink_to(outside)
    (workspace / "node_modules").symlink_to(outside)  # by its name only: what it leads to is no such folder
    (workspace / ".venv/lib/python3.11").mkdir(parents=True)
    write(workspace, **{".venv/pyvenv.cfg": ""})
    (workspace / ".venv/lib/python3.11/site-packages").symlink_to(outside)
    for folder in (
        "build",
        "node_modules",
        ".venv/lib/python3.11/site-packages",
        "build/../build",
        str(outside),
    ):
        for tool, args in every_door(f"{folder}/s.txt"):
            result = await call(workspace, tool, **args)
            assert not result.ok
            assert CANARY not in result.text
    assert (outside / "s.txt").read_text() == CANARY


async def test_dependencies_outside_the_workspace_are_seen_and_never_changed(
    workspace: Path, outside: Path
) -> None:
    write(workspace, **{".gitignore": "node_modules\n"})
    (workspace / "node_modules").symlink_to(outside / "node_modules")
    for path in ("node_modules/x/i.js", str(outside / "node_modules/x/i.js")):
        read = await call(workspace, "files/read", path=path)
        assert read.text == "1 | const inner = 1\n[a dependency outside the workspace, read-only]"
        found = await call(workspace, "search/text", pattern="inner", path=path)
        assert found.text.endswith(f"{outside}/node_modules/x/i.js\n1:const inner = 1")
        for tool, args in every_door(path)[6:]:
            assert not (await call(workspace, tool, **args)).ok
    assert "i.js" in (await call(workspace, "files/list", path="node_modules/x")).text
    everything = await call(workspace, "search/text", pattern=r"inner|CANARY", path="node_modules")
    assert CANARY not in everything.text
    assert "i.js" in everything.text
    for path in (
        "node_modules/x/.env",
        "node_modules/x/out.txt",
        "node_modules/x/up/s.txt",
        "node_modules/../s.txt",
        "node_modules/x/up",
    ):
        for tool, args in every_door(path):
            result = await call(workspace, tool, **args)
            assert not result.ok, (path, tool, result.text)
            assert CANARY not in result.text
    assert (outside / "node_modules/x/i.js").read_text() == "const inner = 1\n"
