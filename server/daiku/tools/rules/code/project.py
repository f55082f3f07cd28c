"""What project this is, from the names of its files and what its manifests say: facts for those who work in it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

MANIFEST_LIMIT = 100_000
"""Characters of a manifest; a longer one counts as there, but is not read."""
FACTS_LIMIT = 4000
MOST_DOTS = 60
SHOWN_PACKAGES = 10
SHOWN_COMMANDS = 6

_NAME = re.compile(r"[A-Za-z0-9][\w:.@/-]{0,39}")
_VERSION = re.compile(r"[\w.<>=^~*|, +-]{1,40}")


class Folder(NamedTuple):
    """A folder as its package is told from it. `path` is how a command names it, empty for the project's
    own; `python` the interpreter of a virtual environment in it, relative to it."""

    path: str
    files: frozenset[str]
    folders: frozenset[str] = frozenset()
    texts: Mapping[str, str] = {}
    python: str = ""

    def has(self, *names: str) -> bool:
        """Whether one of these files is there."""
        return any(name in self.files for name in names)

    def first(self, *names: str) -> str:
        """The first of these files that is there."""
        return next((name for name in names if name in self.files), "")


class Package(NamedTuple):
    """One package of the project: what it is written in, who manages it and why that is known, the commands
    that set it up, test it and check it, and what else is known."""

    path: str
    language: str
    manager: str
    why: str
    setup: str = ""
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


def package_facts(packages: Sequence[Package]) -> str:
    """The packages as a model is told of them: the same text for the same files, bounded."""
    lines = [_line(package) for package in packages[:SHOWN_PACKAGES]]
    rest = len(packages) - SHOWN_PACKAGES
    if rest > 0:
        lines.append(f"- and {rest} more packages")
    while len("\n".join(lines)) > FACTS_LIMIT:
        lines = [*lines[:-2], "- and more packages"]
    return "\n".join(lines)


def _line(package: Package) -> str:
    where = f"`{package.path}`" if package.path else "here"
    parts = [f"{package.language} with {package.manager} ({package.why})", *package.facts]
    for label, commands in (
        ("set up", (package.setup,) if package.setup else ()),
        ("tests", package.tests),
        ("checks", package.checks),
    ):
        if commands:
            parts.append(f"{label}: " + ", ".join(f"`{command}`" for command in commands[:SHOWN_COMMANDS]))
    return f"- {where}: " + "; ".join(parts)


# ---- manifests as strangers write them


def sub_table(value: object, *keys: str) -> dict[str, Any]:
    """The table that `keys` lead to; empty where there is none."""
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def json_of(folder: Folder, name: str) -> dict[str, Any]:
    """The object in a JSON manifest; empty where it is broken."""
    try:
        return sub_table(json.loads(folder.texts.get(name, "")))
    except (ValueError, RecursionError):
        return {}


def toml_of(folder: Folder, name: str) -> dict[str, Any]:
    """The document of a TOML manifest; empty where it is broken."""
    text = folder.texts.get(name, "")
    if any(line.count(".") > MOST_DOTS and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {}  # a key of so many parts takes the parser for ever, and nobody writes one
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def version_of(value: object) -> str:
    """Return `value` if it is a version or range that is safe to show, else an empty string."""
    text = value.strip() if isinstance(value, str) else ""
    return text if _VERSION.fullmatch(text) else ""


def safe_names(names: Iterable[object]) -> tuple[str, ...]:
    """The names among these that can be shown in a command."""
    return tuple(name for name in names if isinstance(name, str) and _NAME.fullmatch(name))


def pinned_version(folder: Folder, name: str) -> str:
    """The version in a file that holds nothing else, such as .nvmrc."""
    line = next((line for line in folder.texts.get(name, "").splitlines() if line.strip()), "")
    return version_of(line.partition("#")[0])


# ---- JavaScript and TypeScript

_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
)
_LOCKED = frozenset(lock for lock, _ in _LOCKS)
_IN = {"npm": "npm --prefix {}", "pnpm": "pnpm -C {}", "yarn": "yarn --cwd {}", "bun": "bun --cwd {}"}
_SETUP = {
    "npm": "ci",
    "pnpm": "install --frozen-lockfile",
    "yarn": "install --immutable",
    "bun": "install --frozen-lockfile",
}
_CHECKING = re.compile(r"(?:lint|typecheck|type-check|types|check|tsc|format:check|build)(?::[\w-]+)?")
_NO_TESTS = "no test specified"
_TESTERS = ("vitest", "jest", "mocha", "ava", "jasmine", "@playwright/test", "cypress")


class PackageTool(NamedTuple):
    """What a package is set up with, what says so, and whether that lies in a folder above it."""

    name: str
    evidence: str
    above: bool = False

    @property
    def origin(self) -> str:
        """Return the evidence for the tool, and whether it lies in a parent folder."""
        return f"{self.evidence} above" if self.above else self.evidence


def javascript(folder: Folder, above: Sequence[Folder] = ()) -> Package | None:
    """Detect a package.json package; in a monorepo the lock file may be in a parent folder."""
    if not folder.has("package.json"):
        return None
    manifest = json_of(folder, "package.json")
    tool = _js_tool(folder, manifest, above)
    manager = tool.name
    base = _IN[manager].format(folder.path) if folder.path else manager
    scripts = sub_table(manifest, "scripts")
    usable = [n for n in safe_names(scripts) if isinstance(scripts[n], str) and _NO_TESTS not in scripts[n]]
    tests = [f"{base} test" if name == "test" else f"{base} run {name}" for name in usable if _tests(name)]
    checks = [f"{base} run {name}" for name in usable if _CHECKING.fullmatch(name)]
    packages = {**sub_table(manifest, "dependencies"), **sub_table(manifest, "devDependencies")}
    typed = folder.has("tsconfig.json") or "typescript" in packages
    known: list[str] = []
    if (
        node := pinned_version(folder, ".nvmrc")
        or pinned_version(folder, ".node-version")
        or version_of(sub_table(manifest, "engines").get("node"))
    ):
        known.append(f"Node {node}")
    if testers := [name for name in _TESTERS if name in packages]:
        known.append("test runner " + ", ".join(testers))
    return Package(
        folder.path,
        "TypeScript" if typed else "JavaScript",
        manager,
        tool.origin,
        "" if tool.above else f"{base} {_SETUP[manager] if tool.evidence in _LOCKED else 'install'}",
        tuple(tests),
        tuple(checks),
        tuple(known),
    )


def _tests(name: str) -> bool:
    return name == "test" or name.startswith("test:")


def _js_tool(folder: Folder, manifest: Mapping[str, Any], above: Sequence[Folder]) -> PackageTool:
    asked = str(manifest.get("packageManager") or "").partition("@")[0]
    if asked in _IN:
        return PackageTool(asked, "packageManager in package.json")
    if (locked := _locked(_LOCKS, folder, above)) is not None:
        return locked
    for each in above:
        asked = str(json_of(each, "package.json").get("packageManager") or "").partition("@")[0]
        if asked in _IN:
            return PackageTool(asked, "packageManager", above=True)
    return PackageTool("npm", "no lock file")


def _locked(locks: Iterable[tuple[str, str]], folder: Folder, above: Sequence[Folder]) -> PackageTool | None:
    """The tool whose lock file lies in the folder, or in one above it."""
    found = ((each, lock, name) for each in (folder, *above) for lock, name in locks if each.has(lock))
    return next((PackageTool(name, lock, each is not folder) for each, lock, name in found), None)


# ---- Python

_PY_LOCKS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv"))
_PY_SETUP = {
    "uv": "uv sync",
    "poetry": "poetry install",
    "pdm": "pdm install",
    "pipenv": "pipenv install --dev",
    "conda": "conda env update --file environment.yml",
}
_PY_IN = {"uv": "uv run --directory {}", "poetry": "poetry -C {} run", "pdm": "pdm run -p {}"}


def python(folder: Folder, above: Sequence[Folder] = ()) -> Package | None:
    """Detect a Python package or application by its manifest."""
    manifests = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "environment.yml", "manage.py")
    listed = next((name for name in sorted(folder.files) if _REQUIREMENTS.fullmatch(name)), "")
    manifest = folder.first(*manifests) or listed
    if not manifest:
        return None
    project = toml_of(folder, "pyproject.toml")
    tool = _py_tool(folder, project, above, manifest)
    manager = tool.name
    interpreter, run = _py_run(folder, manager, above)
    known = [f"virtual environment, interpreter `{interpreter}`"] if interpreter else []
    wanted = pinned_version(folder, ".python-version") or version_of(
        sub_table(project, "project").get("requires-python")
    )
    if wanted:
        known.append(f"Python {wanted}")
    setup = _PY_SETUP.get(manager, "")
    if manager == "pip":
        what = f"-r {_join(folder.path, listed)}" if listed else f"-e {folder.path or '.'}"
        setup = f"{interpreter or 'python3'} -m pip install {what}"
    elif tool.above:
        setup = ""
    elif folder.path and manager == "uv":
        setup = f"uv sync --directory {folder.path}"
    return Package(
        folder.path,
        "Python",
        manager,
        tool.origin,
        setup,
        _py_tests(folder, project, run, interpreter),
        _py_checks(folder, project, run, interpreter),
        tuple(known),
    )


_REQUIREMENTS = re.compile(r"requirements[\w.-]*\.txt")


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _py_tool(
    folder: Folder, project: Mapping[str, Any], above: Sequence[Folder], manifest: str
) -> PackageTool:
    if (locked := _locked(_PY_LOCKS, folder, above)) is not None:
        return locked
    for name in ("uv", "poetry", "pdm"):
        if sub_table(project, "tool", name):
            return PackageTool(name, f"tool.{name} in pyproject.toml")
    if folder.has("Pipfile"):
        return PackageTool("pipenv", "Pipfile")
    return PackageTool("conda" if manifest == "environment.yml" else "pip", manifest)


def _py_run(folder: Folder, manager: str, above: Sequence[Folder]) -> tuple[str, str]:
    """The interpreter of the virtual environment (its own, or one above), and what stands before a program
    that the manager is to run in it."""
    home = next((each for each in (folder, *above) if each.python), None)
    interpreter = _join(home.path, home.python) if home is not None else ""
    if manager in ("uv", "poetry", "pdm", "pipenv"):
        if not folder.path:
            return interpreter, f"{manager} run "
        inside = _PY_IN.get(manager)
        if inside is not None:
            return interpreter, inside.format(folder.path) + " "
    return interpreter, ""


def _py_tests(folder: Folder, project: Mapping[str, Any], run: str, interpreter: str) -> tuple[str, ...]:
    says = "\n".join(folder.texts.values())
    place = "" if run or not folder.path else f" {folder.path}"
    if sub_table(project, "tool", "pytest") or folder.has("pytest.ini", "conftest.py") or "pytest" in says:
        return (_py_module(run, interpreter, "pytest") + place,)
    if folder.has("tox.ini"):
        return (_py_module(run, interpreter, "tox"),)
    if folder.has("noxfile.py"):
        return (_py_module(run, interpreter, "nox"),)
    if folder.has("manage.py"):
        return (f"{run}{interpreter or 'python'} {_join(folder.path, 'manage.py')} test",)
    if folder.folders & {"tests", "test"}:
        found = f" discover -s {folder.path}" if place else ""
        return (_py_module(run, interpreter, "unittest") + found,)
    return ()


def _py_module(run: str, interpreter: str, module: str) -> str:
    if run:
        return f"{run}{module}" if module != "unittest" else f"{run}python -m unittest"
    return f"{interpreter or 'python3'} -m {module}"


def _py_checks(folder: Folder, project: Mapping[str, Any], run: str, interpreter: str) -> tuple[str, ...]:
    place = "." if run or not folder.path else folder.path
    tools = sub_table(project, "tool")
    wanted = (
        ("ruff", "ruff.toml", f"ruff check {place}"),
        ("mypy", "mypy.ini", f"mypy {place}"),
        ("basedpyright", "", "basedpyright"),
        ("pyright", "pyrightconfig.json", "pyright"),
        ("flake8", ".flake8", f"flake8 {place}"),
        ("black", "", f"black --check {place}"),
    )
    found = [command for tool, name, command in wanted if tool in tools or (name and folder.has(name))]
    return tuple(_py_module(run, interpreter, command) for command in found)
