"""The names of the library: found when they are first used, and the same for type checkers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import daiku
from daiku.team.running import RunnerOptions
from tests.conftest import ROOT

PROTOCOL = [
    "Agent",
    "Runner",
    "Result",
    "Tool",
    "tool",
    "Guardrail",
    "GuardrailViolation",
    "Memory",
    "TraceLogger",
    "LLMAdapter",
    "ToolRegistry",
    "Chunk",
    "Change",
    "ChangeOp",
    "PatchJSON",
    "merge_patches",
]


def test_every_name_is_there_and_known_to_type_checkers() -> None:
    """R1.10: what a program imports is one flat list of names."""
    stub = ast.parse((ROOT / "server/daiku/__init__.pyi").read_text("utf-8"))
    told = {
        (alias.asname, node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == set(daiku._PLACES.items())
    for name in PROTOCOL:
        assert getattr(daiku, name).__name__ == name.removesuffix("_")
    unknown = "cook"
    with pytest.raises(AttributeError, match="no attribute 'cook'"):
        getattr(daiku, unknown)
    assert (ROOT / "server/daiku/py.typed").is_file()


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, daiku; print(sorted({'pydantic', 'openai', 'anthropic', 'mcp', 'jinja2'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "server", capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_an_agents_own_runner_takes_every_option_of_a_runner() -> None:
    parameters = list(inspect.signature(daiku.Runner).parameters)
    assert sorted(RunnerOptions.__annotations__) == sorted(parameters)


def test_a_star_import_and_dir_show_every_name() -> None:
    space: dict[str, object] = {}
    exec("from daiku import *", space)  # what a person types
    assert set(vars(daiku)["__all__"]) <= set(space)
    assert set(vars(daiku)["__all__"]) <= set(dir(daiku))
    assert {"Agent", "Runner", "tool", "merge_patches"} <= set(space)
