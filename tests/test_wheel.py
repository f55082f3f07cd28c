"""The wheel: what `pip install .` gives, without Node and without the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_repository import committed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content in a folder that can be put on the path."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_daiku(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m daiku WORDS` with the wheel's code, far from the checkout."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    command = [sys.executable, "-m", "daiku", *words]
    return subprocess.run(
        command, cwd=installed.parent, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_every_prompt_of_the_checkout_is_in_the_wheel(installed: Path) -> None:
    prompts = ROOT / "prompts"
    wanted = {path.relative_to(prompts) for path in prompts.rglob("*") if path.is_file()}
    shipped = installed / "daiku" / "_prompts"
    assert wanted
    assert {path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file()} == wanted


def test_the_generators_templates_are_found_without_the_checkout(installed: Path) -> None:
    """R3.5, R3.10: by a program that names no folder."""
    program = (
        "from daiku.playbook.generate import PromptBuilder; print(PromptBuilder().build('Q', [], 'appworld'))"
    )
    path = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert b"AppWorld" in done.stdout, done.stderr


def test_its_types_are_in_the_wheel(installed: Path) -> None:
    assert (installed / "daiku" / "py.typed").is_file()
    assert (installed / "daiku" / "__init__.pyi").read_text("utf-8").count("import Agent as Agent") == 1


def test_every_task_of_an_evaluation_is_in_the_wheel_byte_by_byte(installed: Path) -> None:
    tasks = ROOT / "server" / "evals"
    wanted = {p.relative_to(tasks): p.read_bytes() for p in committed() if p.is_relative_to(tasks)}
    shipped = installed / "daiku" / "_evals"
    assert wanted
    assert {p.relative_to(shipped): p.read_bytes() for p in shipped.rglob("*") if p.is_file()} == wanted
    listed = run_daiku(installed, "eval", "--list")
    assert len(listed.stdout.splitlines()) >= 20, listed.stderr


def test_every_module_is_in_the_wheel_and_nothing_else(installed: Path) -> None:
    source = ROOT / "server" / "daiku"
    wanted = {path.relative_to(source) for path in source.rglob("*.py")}
    package = installed / "daiku"
    found = {path.relative_to(package) for path in package.rglob("*.py")}
    assert {path for path in found if path.parts[0] != "_evals"} == wanted


def test_the_wheel_gives_the_daiku_command(installed: Path) -> None:
    entry_points = next(installed.glob("daiku-*.dist-info")) / "entry_points.txt"
    assert "daiku = daiku.__main__:main" in entry_points.read_text(encoding="utf-8")


def test_wheel_has_the_notices_of_bundled_material(installed: Path) -> None:
    info = next(installed.glob("daiku-*.dist-info"))
    metadata = (info / "METADATA").read_text("utf-8")
    assert {"LICENSE", "NOTICE"} == set(re.findall(r"^License-File: (.+)$", metadata, re.MULTILINE))
    notice = (info / "licenses" / "NOTICE").read_text("utf-8")
    licenses = list((installed / "daiku").rglob("*.LICENSE"))
    assert licenses
    for path in licenses:
        assert path.with_suffix(".tsv").relative_to(installed).as_posix() in notice
        assert path.read_text("utf-8").strip() in notice
    assert "daiku/guard/guardrails/corpus.json" in notice


def test_the_command_runs_without_the_checkout(installed: Path) -> None:
    done = run_daiku(installed, "--help")
    assert done.returncode == 0, done.stderr
    for command in ("lsp", "run", "chat", "doctor"):
        assert command in done.stdout
