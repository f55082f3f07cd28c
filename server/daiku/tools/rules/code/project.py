"""Detect the packages of a project from its file names and manifests, as facts for agents."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

MANIFEST_LIMIT = 100_000
"""Characters of the longest manifest that is read."""
FACTS_LIMIT = 4000
"""Characters of the facts."""
MAX_DOTS = 60
"""Dots in one line of TOML. The parser takes very long for keys with many parts."""
MAX_PACKAGES = 10
"""Packages in the facts."""
MAX_COMMANDS = 6
"""Commands per package and kind."""

_SAFE_NAME = re.compile(r"[A-Za-z0-9][\w:.@/-]{0,39}")
_SAFE_VERSION = re.compile(r"[\w.<>=^~*|, +-]{1,40}")


class ProjectFolder(NamedTuple):
    """A folder to detect packages in.

    `path`: as a command names it, empty for the project's own; `python`: the interpreter of a virtual
    environment in it, relative to it.
    """

    path: str
    files: frozenset[str]
    folders: frozenset[str] = frozenset()
    texts: Mapping[str, str] = {}
    python: str = ""

    def has(self, *names: str) -> bool:
        """Return True if one of these files exists."""
        return any(name in self.files for name in names)

    def find_first(self, *names: str) -> str:
        """Return the first of these files that exists."""
        return next((name for name in names if name in self.files), "")


class Package(NamedTuple):
    """A package of the project: language, package manager and the evidence for it, commands, and other facts."""

    path: str
    language: str
    manager: str
    why: str
    setup: str = ""
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


def format_packages(packages: Sequence[Package]) -> str:
    """Format the packages for a model. The same files give the same text, of bounded length."""
    lines = [_format_package(package) for package in packages[:MAX_PACKAGES]]
    rest = len(packages) - MAX_PACKAGES
    if rest > 0:
        lines.append(f"- and {rest} more packages")
    while len("\n".join(lines)) > FACTS_LIMIT:
        lines = [*lines[:-2], "- and more packages"]
    return "\n".join(lines)


def _format_package(package: Package) -> str:
    location = f"`{package.path}`" if package.path else "here"
    parts = [f"{package.language} with {package.manager} ({package.why})", *package.facts]
    for label, commands in (
        ("set up", (package.setup,) if package.setup else ()),
        ("tests", package.tests),
        ("checks", package.checks),
    ):
        if commands:
            parts.append(f"{label}: " + ", ".join(f"`{command}`" for command in commands[:MAX_COMMANDS]))
    return f"- {location}: " + "; ".join(parts)


# ---- untrusted manifests


def read_table(value: object, *keys: str) -> dict[str, Any]:
    """Return the table under `keys`; empty if there is none."""
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def parse_json(folder: ProjectFolder, name: str) -> dict[str, Any]:
    """Parse a JSON manifest; empty if it is invalid."""
    try:
        return read_table(json.loads(folder.texts.get(name, "")))
    except (ValueError, RecursionError):
        return {}


def parse_toml(folder: ProjectFolder, name: str) -> dict[str, Any]:
    """Parse a TOML manifest; empty if it is invalid."""
    text = folder.texts.get(name, "")
    if any(line.count(".") > MAX_DOTS and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {}  # the parser takes very long for such keys
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def to_safe_version(value: object) -> str:
    """Return `value` if it is a version or range that is safe to show, else an empty string."""
    text = value.strip() if isinstance(value, str) else ""
    return text if _SAFE_VERSION.fullmatch(text) else ""


def filter_safe_names(names: Iterable[object]) -> tuple[str, ...]:
    """Return the names that are safe to show in a command."""
    return tuple(name for name in names if isinstance(name, str) and _SAFE_NAME.fullmatch(name))


def read_pinned_version(folder: ProjectFolder, name: str) -> str:
    """Return the version in a file that contains only that, such as .nvmrc."""
    line = next((line for line in folder.texts.get(name, "").splitlines() if line.strip()), "")
    return to_safe_version(line.partition("#")[0])


# ---- JavaScript and TypeScript

_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
)
_LOCK_FILES = frozenset(lock for lock, _ in _LOCKS)
_IN_FOLDER = {"npm": "npm --prefix {}", "pnpm": "pnpm -C {}", "yarn": "yarn --cwd {}", "bun": "bun --cwd {}"}
_SETUP = {
    "npm": "ci",
    "pnpm": "install --frozen-lockfile",
    "yarn": "install --immutable",
    "bun": "install --frozen-lockfile",
}
_CHECK_SCRIPT = re.compile(r"(?:lint|typecheck|type-check|types|check|tsc|format:check|build)(?::[\w-]+)?")
_NO_TESTS = "no test specified"
_TEST_RUNNERS = ("vitest", "jest", "mocha", "ava", "jasmine", "@playwright/test", "cypress")


class PackageTool(NamedTuple):
    """A package manager, the evidence for it, and whether that is in a parent folder."""

    name: str
    evidence: str
    above: bool = False

    @property
    def origin(self) -> str:
        """The evidence for the tool, and whether it is in a parent folder."""
        return f"{self.evidence} above" if self.above else self.evidence


def detect_javascript(folder: ProjectFolder, above: Sequence[ProjectFolder] = ()) -> Package | None:
    """Detect a package.json package; in a monorepo the lock file may be in a parent folder."""
    if not folder.has("package.json"):
        return None
    manifest = parse_json(folder, "package.json")
    tool = _find_js_tool(folder, manifest, above)
    manager = tool.name
    base = _IN_FOLDER[manager].format(folder.path) if folder.path else manager
    scripts = read_table(manifest, "scripts")
    usable = [
        n for n in filter_safe_names(scripts) if isinstance(scripts[n], str) and _NO_TESTS not in scripts[n]
    ]
    tests = [
        f"{base} test" if name == "test" else f"{base} run {name}" for name in usable if _is_test_script(name)
    ]
    checks = [f"{base} run {name}" for name in usable if _CHECK_SCRIPT.fullmatch(name)]
    packages = {**read_table(manifest, "dependencies"), **read_table(manifest, "devDependencies")}
    is_typed = folder.has("tsconfig.json") or "typescript" in packages
    facts: list[str] = []
    if (
        node := read_pinned_version(folder, ".nvmrc")
        or read_pinned_version(folder, ".node-version")
        or to_safe_version(read_table(manifest, "engines").get("node"))
    ):
        facts.append(f"Node {node}")
    if runners := [name for name in _TEST_RUNNERS if name in packages]:
        facts.append("test runner " + ", ".join(runners))
    return Package(
        folder.path,
        "TypeScript" if is_typed else "JavaScript",
        manager,
        tool.origin,
        "" if tool.above else f"{base} {_SETUP[manager] if tool.evidence in _LOCK_FILES else 'install'}",
        tuple(tests),
        tuple(checks),
        tuple(facts),
    )


def _is_test_script(name: str) -> bool:
    return name == "test" or name.startswith("test:")


def _find_js_tool(
    folder: ProjectFolder, manifest: Mapping[str, Any], above: Sequence[ProjectFolder]
) -> PackageTool:
    declared = str(manifest.get("packageManager") or "").partition("@")[0]
    if declared in _IN_FOLDER:
        return PackageTool(declared, "packageManager in package.json")
    if (locked_tool := _find_locked_tool(_LOCKS, folder, above)) is not None:
        return locked_tool
    for parent in above:
        declared = str(parse_json(parent, "package.json").get("packageManager") or "").partition("@")[0]
        if declared in _IN_FOLDER:
            return PackageTool(declared, "packageManager", above=True)
    return PackageTool("npm", "no lock file")


def _find_locked_tool(
    locks: Iterable[tuple[str, str]], folder: ProjectFolder, above: Sequence[ProjectFolder]
) -> PackageTool | None:
    """Return the tool whose lock file is in the folder or a parent folder."""
    matches = (
        (candidate, lock, name)
        for candidate in (folder, *above)
        for lock, name in locks
        if candidate.has(lock)
    )
    return next((PackageTool(name, lock, candidate is not folder) for candidate, lock, name in matches), None)


# ---- Python

_PY_LOCKS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv"))
_PY_SETUP = {
    "uv": "uv sync",
    "poetry": "poetry install",
    "pdm": "pdm install",
    "pipenv": "pipenv install --dev",
    "conda": "conda env update --file environment.yml",
}
_PY_IN_FOLDER = {"uv": "uv run --directory {}", "poetry": "poetry -C {} run", "pdm": "pdm run -p {}"}


def detect_python(folder: ProjectFolder, above: Sequence[ProjectFolder] = ()) -> Package | None:
    """Detect a Python package or application by its manifest."""
    manifests = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "environment.yml", "manage.py")
    requirements = next((name for name in sorted(folder.files) if _REQUIREMENTS_FILE.fullmatch(name)), "")
    manifest = folder.find_first(*manifests) or requirements
    if not manifest:
        return None
    project = parse_toml(folder, "pyproject.toml")
    tool = _find_py_tool(folder, project, above, manifest)
    manager = tool.name
    interpreter, run = _find_py_runner(folder, manager, above)
    facts = [f"virtual environment, interpreter `{interpreter}`"] if interpreter else []
    version = read_pinned_version(folder, ".python-version") or to_safe_version(
        read_table(project, "project").get("requires-python")
    )
    if version:
        facts.append(f"Python {version}")
    setup = _PY_SETUP.get(manager, "")
    if manager == "pip":
        target = f"-r {_join_path(folder.path, requirements)}" if requirements else f"-e {folder.path or '.'}"
        setup = f"{interpreter or 'python3'} -m pip install {target}"
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
        _find_py_tests(folder, project, run, interpreter),
        _find_py_checks(folder, project, run, interpreter),
        tuple(facts),
    )


_REQUIREMENTS_FILE = re.compile(r"requirements[\w.-]*\.txt")


def _join_path(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _find_py_tool(
    folder: ProjectFolder, project: Mapping[str, Any], above: Sequence[ProjectFolder], manifest: str
) -> PackageTool:
    if (locked_tool := _find_locked_tool(_PY_LOCKS, folder, above)) is not None:
        return locked_tool
    for name in ("uv", "poetry", "pdm"):
        if read_table(project, "tool", name):
            return PackageTool(name, f"tool.{name} in pyproject.toml")
    if folder.has("Pipfile"):
        return PackageTool("pipenv", "Pipfile")
    return PackageTool("conda" if manifest == "environment.yml" else "pip", manifest)


def _find_py_runner(folder: ProjectFolder, manager: str, above: Sequence[ProjectFolder]) -> tuple[str, str]:
    """Return the virtual environment's interpreter (own or of a parent folder) and the manager's command prefix."""
    venv_folder = next((candidate for candidate in (folder, *above) if candidate.python), None)
    interpreter = _join_path(venv_folder.path, venv_folder.python) if venv_folder is not None else ""
    if manager in ("uv", "poetry", "pdm", "pipenv"):
        if not folder.path:
            return interpreter, f"{manager} run "
        prefix = _PY_IN_FOLDER.get(manager)
        if prefix is not None:
            return interpreter, prefix.format(folder.path) + " "
    return interpreter, ""


def _find_py_tests(
    folder: ProjectFolder, project: Mapping[str, Any], run: str, interpreter: str
) -> tuple[str, ...]:
    all_texts = "\n".join(folder.texts.values())
    place = "" if run or not folder.path else f" {folder.path}"
    if (
        read_table(project, "tool", "pytest")
        or folder.has("pytest.ini", "conftest.py")
        or "pytest" in all_texts
    ):
        return (_format_module_run(run, interpreter, "pytest") + place,)
    if folder.has("tox.ini"):
        return (_format_module_run(run, interpreter, "tox"),)
    if folder.has("noxfile.py"):
        return (_format_module_run(run, interpreter, "nox"),)
    if folder.has("manage.py"):
        return (f"{run}{interpreter or 'python'} {_join_path(folder.path, 'manage.py')} test",)
    if folder.folders & {"tests", "test"}:
        discovery = f" discover -s {folder.path}" if place else ""
        return (_format_module_run(run, interpreter, "unittest") + discovery,)
    return ()


def _format_module_run(run: str, interpreter: str, module: str) -> str:
    if run:
        return f"{run}{module}" if module != "unittest" else f"{run}python -m unittest"
    return f"{interpreter or 'python3'} -m {module}"


def _find_py_checks(
    folder: ProjectFolder, project: Mapping[str, Any], run: str, interpreter: str
) -> tuple[str, ...]:
    place = "." if run or not folder.path else folder.path
    tools = read_table(project, "tool")
    known_checks = (
        ("ruff", "ruff.toml", f"ruff check {place}"),
        ("mypy", "mypy.ini", f"mypy {place}"),
        ("basedpyright", "", "basedpyright"),
        ("pyright", "pyrightconfig.json", "pyright"),
        ("flake8", ".flake8", f"flake8 {place}"),
        ("black", "", f"black --check {place}"),
    )
    commands = [
        command for tool, name, command in known_checks if tool in tools or (name and folder.has(name))
    ]
    return tuple(_format_module_run(run, interpreter, command) for command in commands)
