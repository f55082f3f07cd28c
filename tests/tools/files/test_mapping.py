"""The map of real folders: along imports in five languages, what the request names first, within its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.tools import ToolCall
from daiku.models.tokens import estimate
from daiku.settings.config import Config
from daiku.tools.files.search import SEARCH_TOOLS
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace

REGISTRY = ToolRegistry(SEARCH_TOOLS)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


async def drawn(root: Path, budget: int = 300, asked: str = "") -> str:
    workspace = DiskWorkspace([root])
    context = ToolContext(
        session="s", run="r", call_id="c", workspace=workspace, config=Config(), emit=lambda event: None, asked=asked,
        checkpoints=CheckpointStore(root.parent / "checkpoints", workspace),
    )  # fmt: skip
    return (await REGISTRY.call(ToolCall(tool="search/map", args={"budget": budget}), context)).text


def first(text: str) -> str:
    """The path of the file that a map begins with."""
    folder, _, rest = text.partition("\n")
    name = (rest if folder.endswith("/") else text).strip().partition(":")[0]
    return folder + name if folder.endswith("/") else name


# In each project `right` is what the others import; `wrong` defines the same names, is larger, and nobody imports it.
PROJECTS = {
    "python": {
        "pkg/__init__.py": "", "pkg/right.py": "class BuildPlan:\n    pass\n", "other/wrong.py": "class BuildPlan:\n    pass\n",
        **{f"pkg/user{i}.py": f"from .right import BuildPlan\n\ndef use{i}():\n    return BuildPlan()\n" for i in range(5)},
    },
    "typescript": {
        "package.json": '{"workspaces": ["packages/*"]}', "packages/core/package.json": '{"name": "@x/core", "main": "dist/index.js"}',
        "packages/core/src/index.ts": "export * from './right'\n", "packages/core/src/right.ts": "export class BuildPlan {}\n",
        "packages/old/wrong.ts": "export class BuildPlan {}\nexport function trim() {}\n",
        **{f"apps/user{i}.ts": f"import {{ BuildPlan }} from '@x/core'\nexport const use{i} = () => new BuildPlan(''.trim())\n" for i in range(5)},
    },
    "go": {
        "go.mod": "module example.org/m\n", "plan/right.go": "package plan\n\nfunc BuildPlan() int { return 1 }\n",
        "old/wrong.go": "package old\n\nfunc BuildPlan() int { return 1 }\n",
        **{f"cmd/user{i}.go": f'package cmd\n\nimport "example.org/m/plan"\n\nfunc Use{i}() int {{ return plan.BuildPlan() }}\n' for i in range(5)},
    },
    "java": {
        "src/main/java/org/x/plan/Right.java": "package org.x.plan;\npublic class Right { public static int buildPlan() { return 1; } }\n",
        "src/main/java/org/x/old/Wrong.java": "package org.x.old;\npublic class Wrong { public static int buildPlan() { return 1; } }\n",
        **{f"src/main/java/org/x/app/User{i}.java": f"package org.x.app;\nimport org.x.plan.Right;\nclass User{i} {{ int use{i}() {{ return Right.buildPlan(); }} }}\n" for i in range(5)},
    },
    "rust": {
        "Cargo.toml": '[package]\nname = "m"\n', "src/lib.rs": "mod right;\nmod wrong;\n" + "".join(f"mod user{i};\n" for i in range(5)),
        "src/right.rs": "pub fn build_plan() -> u8 { 1 }\n", "src/wrong.rs": "pub fn build_plan() -> u8 { 1 }\n",
        **{f"src/user{i}.rs": f"use crate::right::build_plan;\n\npub fn use{i}() -> u8 {{ build_plan() }}\n" for i in range(5)},
    },
}  # fmt: skip


@pytest.mark.parametrize("language", PROJECTS)
async def test_what_is_imported_comes_before_what_only_has_the_same_names(
    workspace: Path, language: str
) -> None:
    write(workspace, **PROJECTS[language])
    text = (await drawn(workspace, 600)).lower()
    assert text.index("right.") < text.index("wrong.")


async def test_what_the_request_names_comes_first(workspace: Path) -> None:
    write(workspace, **PROJECTS["python"])
    write(workspace, **{f"noise/n{i}.py": f"def lonely_{i}():\n    pass\n" for i in range(60)})
    write(
        workspace,
        **{"tests/test_plan.py": "def test_it():\n    pass\n", "far/away.py": "def rare_bird():\n    pass\n"},
    )
    assert first(await drawn(workspace)) == "pkg/right.py"
    for asked, path in {
        "fix lonely_41 please": "noise/n41.py",
        "why does noise/n7.py fail?": "noise/n7.py",
        "look at n9.py": "noise/n9.py",
        "`rare_bird` is wrong": "far/away.py",
        "tests/test_plan.py is red": "tests/test_plan.py",
    }.items():
        assert first(await drawn(workspace, asked=asked)) == path, asked


@pytest.mark.parametrize("budget", [100, 150, 400, 2000])
async def test_the_budget_holds_by_the_ruler_of_requests(workspace: Path, budget: int) -> None:
    for files in PROJECTS.values():
        write(workspace, **files)
    write(
        workspace,
        **{
            f"deep/folder{i % 9}/module{i}.py": f"class Thing{i}:\n    def work(self):\n        pass\n"
            for i in range(150)
        },
    )
    text = await drawn(workspace, budget)
    assert 0.6 * budget < estimate(text) <= budget
    write(workspace, **{f"big/f{i % 20}/file{i}.txt": "" for i in range(1000)})
    text = await drawn(workspace, budget)
    assert estimate(text) <= budget
    assert text.startswith("1,1") or budget < 400
