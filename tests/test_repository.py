"""What is committed: locks that name no registry, one version everywhere, no places of one machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.conftest import ROOT

# In pieces, so that this file does not name them either.
REGISTRIES = (
    "registry.npm" + "js.org",
    "py" + "pi.org",
    "files.python" + "hosted.org",
    "deb.deb" + "ian.org",
)
PLACES = ("/wo" + "rk/main", "/wo" + "rk/shared", "/tmp/te" + "am")


def committed() -> list[Path]:
    """The files under version control; the test is skipped where this is no checkout."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # A source archive has no list of the files that git tracks.
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name]


@for_each("word", [*REGISTRIES, *PLACES])
def test_no_committed_file_names_a_registry_or_a_place_of_one_machine(word: str) -> None:
    found = [path for path in committed() if path.is_file() and word.encode() in path.read_bytes()]
    assert not found, found


def test_every_locked_python_package_has_a_hash() -> None:
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt"):
        text = (ROOT / "server" / name).read_text(encoding="utf-8")
        packages = re.findall(r"^(\S+==\S+)(.*)$", text, re.MULTILINE)
        assert packages
        assert all(rest.endswith("\\") for _, rest in packages), name


def test_the_locks_agree() -> None:
    def pinned(name: str) -> dict[str, str]:
        text = (ROOT / "server" / name).read_text(encoding="utf-8")
        return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))

    used = pinned("requirements.txt")
    for other in ("requirements-dev.txt", "requirements-docs.txt"):
        installed = pinned(other)
        assert {name: installed.get(name) for name in used} == used, other


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "server" / "requirements.txt").read_text(encoding="utf-8")
    names = [re.split(r"[<>=\[; ]", dependency)[0] for dependency in project["dependencies"]]
    missing = [name for name in names if not re.search(rf"^{re.escape(name)}==", text, re.MULTILINE)]
    assert not missing, f"run `npm run lock`: {missing}"


def test_there_is_one_version() -> None:
    source = (ROOT / "server" / "daiku" / "version.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert version is not None
    for manifest in ("package.json", "extension/package.json"):
        assert json.loads((ROOT / manifest).read_text(encoding="utf-8"))["version"] == version[1], manifest


def test_a_python_whose_start_warns_about_the_locale_is_found(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        # `npm test` brings Node.js; pytest alone may run without it.
        pytest.skip("no node here")
    shim = tmp_path / "python3"
    shim.write_text(
        '#!/bin/sh\necho "bash: warning: setlocale: LC_ALL: cannot change locale" >&2\necho 3.12\n'
    )
    shim.chmod(0o755)
    code = f"console.log(JSON.stringify(await (await import({json.dumps(str(ROOT / '.dev/setup.mjs'))})).findPython()))"
    done = subprocess.run(
        [node, "--input-type=module", "-e", code],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == '{"program":"python3","version":"3.12"}', done.stderr


AGENT_SDKS = (
    "agno", "autogen", "claude-agent-sdk", "crewai", "google-adk", "haystack-ai", "langchain", "langgraph",
    "llama-index", "openai-agents", "pydantic-ai", "semantic-kernel", "smolagents", "strands-agents",
)  # fmt: skip


def test_no_agent_sdk_is_needed_and_python_3_11_is_enough() -> None:
    """X.7, R1.1: the framework stands on vendors' plain clients alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(d for more in project["optional-dependencies"].values() for d in more),
    ]
    names = {re.split(r"[\[<>=!~; ]", each, maxsplit=1)[0].lower() for each in wanted}
    assert not {name for name in names if name.startswith(AGENT_SDKS)}
    assert project["requires-python"] == ">=3.11"


def test_pydantic_is_of_the_second_version_and_asked_in_its_own_words() -> None:
    """X.8: no name of the first version is left, which the second one only bears with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [wanted] = [each for each in project["dependencies"] if each.startswith("pydantic")]
    assert re.fullmatch(r"pydantic>=2\.\d+,<3", wanted)
    first = re.compile(r"\b(parse_obj|parse_raw|parse_obj_as|update_forward_refs|__root__)\b|pydantic\.v1")
    files = (ROOT / "server/daiku").rglob("*.py")
    assert not [str(path) for path in files if first.search(path.read_text("utf-8"))]


def test_each_test_that_is_listed_as_slow_is_there() -> None:
    listed = (ROOT / "tests" / "slow.txt").read_text("utf-8").split()
    gone: list[str] = []
    for test in listed:
        file, _, name = test.partition("::")
        path = ROOT / file
        if not path.is_file() or f"def {name}(" not in path.read_text("utf-8"):
            gone.append(test)
    assert not gone, f"`npm run slow` lists them anew: {gone}"
    assert not [test for test in listed if test.startswith("tests/test_")], "these stay in the fast loop"


def test_no_group_is_repeated_possessively() -> None:
    """C24.1: Python 3.11.2 (Debian 12) matches `(?:…)*+` wrongly if an alternative fails midway; use `(?>(?:…)*)`."""
    repeated = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+(?!\d)")
    files = [*(ROOT / "server/daiku").rglob("*.py"), *(ROOT / "server/daiku").rglob("*.tsv")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in files
        for line in path.read_text("utf-8").splitlines()
        if repeated.search(line)
    ]
    assert not [line for line in found if not line.startswith(KNOWN_NO_PATTERNS)], found


KNOWN_NO_PATTERNS = ("open_documents.py:", "redact.py:")
"""Lines with such characters inside a set or a text."""
