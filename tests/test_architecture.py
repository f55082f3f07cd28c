"""The shape of the server: layers, doors to technology, no cycles, sizes, docstrings (DESIGN 2, 3 and 9)."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.conftest import ROOT

PACKAGE = ROOT / "server" / "daiku"

# Technology -> the modules (or packages) that may import it.
DOORS: dict[str, tuple[str, ...]] = {
    "pygls": ("daiku.fronts.lsp",),
    "lsprotocol": ("daiku.fronts.lsp",),
    "openai": ("daiku.models",),
    "anthropic": ("daiku.models",),
    "google": ("daiku.models",),
    "mcp": ("daiku.tools.mcp",),
    "acp": ("daiku.fronts.acp",),
    "starlette": ("daiku.fronts.http",),
    "uvicorn": ("daiku.fronts.http",),
    "jinja2": ("daiku.prompts",),
    "dataclasses": ("daiku.dataclass",),
    "sqlite3": ("daiku.store",),
    "psycopg": ("daiku.store",),
    "jwt": ("daiku.items.github",),
    "subprocess": (
        "daiku.tools.shell",
        "daiku.tools.git.git",
        "daiku.guard.sandbox",
        "daiku.guard.guardrails.matching",  # Python itself, on patterns that may never end
        "daiku.workspace.repository",  # git ls-files, fixed flags, with settings that start no program
        "daiku.tools.files.engines",  # search/text: one program, fixed flags, never one from the workspace
    ),
    "pty": ("daiku.tools.shell",),
    "click": ("daiku.fronts.cli", "daiku.__main__"),
}
# Calls that start a process without importing subprocess: of any object, and of the module os.
PROCESS_CALLS = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"}
OS_PROCESS_CALLS = {
    "system",
    "popen",
    "spawnv",
    "execv",
    "execve",
    "execvp",
    "posix_spawn",
    "fork",
    "forkpty",
}


# The rules of a room and `domain` decide; they reach nothing outside, and read no clock.
IMPURE = {
    "os", "io", "sys", "socket", "ssl", "select", "selectors", "subprocess", "multiprocessing", "threading",
    "shutil", "tempfile", "glob", "sqlite3", "http", "urllib", "ftplib", "smtplib", "logging", "signal", "pty",
    "ctypes", "importlib", "httpx", "httpx2", "openai", "anthropic", "mcp", "pygls", "lsprotocol", "jinja2",
    "click", "platformdirs", "pydantic_settings", "markdownify",
}  # fmt: skip
# Names of an otherwise impure module that only calculate.
PURE_NAMES = {"urllib": {"urllib.parse"}}

LONG_FUNCTIONS: dict[str, str] = {
    # "daiku.module:function": "why it is one piece",
}
MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 400
MAX_FILES_IN_A_ROOM = 20


@dataclass(frozen=True, slots=True)
class Imported:
    """One import statement's target as seen from one module."""

    target: str
    line: int
    inside_function: bool


@dataclass(frozen=True, slots=True)
class Module:
    """A source file of the server, parsed."""

    name: str
    path: Path
    source: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    """Every node of the tree: seven tests look through them."""

    @property
    def lines(self) -> int:
        return self.source.count("\n")


@cache
def modules() -> dict[str, Module]:
    """Every module of the server by its dotted name."""
    found: dict[str, Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source, str(path))
        found[name] = Module(name, path, source, tree, tuple(ast.walk(tree)))
    return found


def _targets(node: ast.Import | ast.ImportFrom, names: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    for alias in node.names:
        dotted = f"{base}.{alias.name}"
        yield dotted if dotted in names or base == "urllib" else base


@cache
def imports(name: str) -> tuple[Imported, ...]:
    """What a module imports, wherever in the file the statement stands."""
    names = frozenset(modules())
    functions = [n for n in modules()[name].nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = {line for f in functions for line in range(f.lineno, (f.end_lineno or f.lineno) + 1)}
    return tuple(
        Imported(target, node.lineno, node.lineno in lines)
        for node in modules()[name].nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in _targets(node, names)
    )


def first_party(name: str) -> set[str]:
    """The server's own modules that a module imports."""
    return {i.target for i in imports(name) if i.target in modules()} - {name}


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


@cache
def contract() -> dict[str, list[str]]:
    """The contract of rooms in pyproject.toml, as import-linter reads it (DESIGN 3)."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return config["tool"]["importlinter"]["contracts"][0]


@cache
def layers() -> list[list[str]]:
    """The rooms, highest first."""
    return [[part.strip(" ()") for part in layer.split("|")] for layer in contract()["layers"]]


@cache
def exceptions() -> re.Pattern[str]:
    """Imports that may point upward: of rules, which are for all, and those that the contract names."""
    lines = (re.escape(line) for line in contract()["ignore_imports"])
    return re.compile("|".join(line.replace(r"\*\*", ".+").replace(r"\*", "[^.]+") for line in lines))


@cache
def layer_of(name: str) -> tuple[int, str] | None:
    for depth, layer in enumerate(layers()):
        for package in layer:
            if within(name, (package,)):
                return depth, package
    return None


def test_every_module_has_a_place_in_the_layers() -> None:
    homeless = [name for name in modules() if name != "daiku" and layer_of(name) is None]
    assert not homeless, f"add these to the layers in pyproject.toml: {homeless}"


def test_imports_point_downward() -> None:
    wrong: list[str] = []
    for name in modules():
        here = layer_of(name)
        for target in first_party(name):
            there = layer_of(target)
            if here is None or there is None or here[1] == there[1]:
                continue
            if there[0] <= here[0] and not exceptions().fullmatch(f"{name} -> {target}"):
                wrong.append(f"{name} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_one_another_in_a_circle() -> None:
    state: dict[str, str] = {}
    trail: list[str] = []

    def visit(name: str) -> list[str] | None:
        state[name] = "open"
        trail.append(name)
        for target in sorted(first_party(name)):
            if state.get(target) == "open":
                return [*trail[trail.index(target) :], target]
            if target not in state and (circle := visit(target)):
                return circle
        trail.pop()
        state[name] = "done"
        return None

    for name in modules():
        if name not in state:
            circle = visit(name)
            assert circle is None, " -> ".join(circle or [])


@for_each("library", sorted(DOORS))
def test_a_technology_has_one_door(library: str) -> None:
    """R1.6: vendors stand behind the adapter, tools behind the registry, storage behind the trace's store."""
    strangers = [
        f"{name}:{i.line}"
        for name in modules()
        for i in imports(name)
        if i.target.partition(".")[0] == library and not within(name, DOORS[library])
    ]
    assert not strangers, f"only {DOORS[library]} may import {library}: {strangers}"


def _starts_a_process(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    of_os = isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
    return node.func.attr in PROCESS_CALLS or (of_os and node.func.attr in OS_PROCESS_CALLS)


def test_processes_are_started_only_where_subprocess_may_be_imported() -> None:
    starters = [
        f"{name}:{node.lineno}"
        for name, module in modules().items()
        if not within(name, DOORS["subprocess"])
        for node in module.nodes
        if isinstance(node, ast.expr) and _starts_a_process(node)
    ]
    assert not starters, starters


# Functions whose first argument is a command, or a program's path.
STARTERS = PROCESS_CALLS | {"run", "Popen", "check_output", "run_program", "run_argv", "start", "start_piped", "wrap_in_reaper",
                            *OS_PROCESS_CALLS}  # fmt: skip


def _is_bare_program(node: ast.AST) -> bool:
    """Return True for a call that starts a program by a name that PATH would explain."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0]
    while isinstance(first, ast.List | ast.Tuple) and first.elts:
        first = first.elts[0]
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    listed = isinstance(node.args[0], ast.List | ast.Tuple)
    starts = called in STARTERS and (listed or called in PROCESS_CALLS)
    if called == "run":  # many things have a method of this name
        starts = (
            starts and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "subprocess.run"
        )
    return starts and is_text and isinstance(first, ast.Constant) and not str(first.value).startswith("/")


def test_programs_are_found_in_one_place_and_never_by_a_bare_name() -> None:
    finders = ("which", "safe_search_path", "find_executable", "get_exec_path")
    found = [
        f"{name}:{node.lineno}"
        for name, module in modules().items()
        for node in module.nodes
        if (isinstance(node, ast.Attribute) and node.attr in finders and name != "daiku.workspace.programs")
        or (isinstance(node, ast.alias) and node.name in finders)
        or (isinstance(node, ast.expr) and _is_bare_program(node))
    ]
    assert not found, found


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ("subprocess.run(['git', 'status'])", True),
        ("subprocess.Popen(('ps', '-e'))", True),
        ("await asyncio.create_subprocess_exec('rg', '-n')", True),
        ("run_argv(['git', *more], where, 1)", True),
        ("wrap_in_reaper(['bash', '-c', line])", True),
        ("subprocess.run([git, 'status'])", False),
        ("subprocess.run(['/bin/sh', '-c', ''])", False),
        ("Repository.run(found, 'rev-parse')", False),
    ],
)
def test_a_bare_program_name_is_noticed(source: str, bare: bool) -> None:
    tree = ast.parse(f"async def f():\n    {source}")
    assert any(map(_is_bare_program, ast.walk(tree))) is bare


def _impurities(name: str) -> Iterator[str]:
    for i in imports(name):
        root = i.target.partition(".")[0]
        if root in IMPURE and i.target not in PURE_NAMES.get(root, ()):
            yield f"{name}:{i.line} imports {i.target}"


def is_pure(name: str) -> bool:
    """Return True for the rules of a room, and for what all rooms speak of."""
    return "rules" in name.split(".") or within(name, ("daiku.domain",))


def test_rules_and_domain_reach_nothing_outside_even_through_others() -> None:
    pending = [name for name in modules() if is_pure(name)]
    seen: set[str] = set()
    found: list[str] = []
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            found.extend(_impurities(name))
            pending.extend(first_party(name))
    assert not found, "\n".join(sorted(found))


def test_importing_rules_loads_no_library_that_does_io() -> None:
    pure = sorted(filter(is_pure, modules()))
    libraries = (
        "httpx",
        "httpx2",
        "openai",
        "anthropic",
        "mcp",
        "pygls",
        "lsprotocol",
        "sqlite3",
        "jinja2",
        "click",
    )
    code = f"import sys, {', '.join(pure)}; print([m for m in {libraries!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stdout + done.stderr


def test_every_module_says_in_one_sentence_what_it_is() -> None:
    silent: list[str] = []
    for name, module in modules().items():
        first = (ast.get_docstring(module.tree) or "").partition("\n")[0]
        if not first.endswith((".", "!", "?")) or len(first) > 160:
            silent.append(f"{name}: {first!r}")
    assert not silent, "the first docstring line is the module's line in the code map:\n" + "\n".join(silent)


def test_an_import_inside_a_function_gives_its_reason() -> None:
    unexplained: list[str] = []
    for name, module in modules().items():
        lines = {i.line for i in imports(name) if i.inside_function}
        comments = lines and {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(module.source).readline)
            if token.type == tokenize.COMMENT
        }
        for line in sorted(lines):
            above = line - 1
            while above in lines:  # one comment stands for the block of imports below it
                above -= 1
            if not {line, above} & comments:
                unexplained.append(f"{name}:{line}")
    assert not unexplained, f"say why on the same line or above: {unexplained}"


def test_a_file_is_what_a_person_can_hold_in_mind() -> None:
    too_long = {name: module.lines for name, module in modules().items() if module.lines > MAX_FILE_LINES}
    assert not too_long, f"over {MAX_FILE_LINES} lines, look for the seam: {too_long}"


def test_a_room_holds_what_a_person_can_look_over() -> None:
    rooms = Counter(module.path.parent for module in modules().values() if module.path.stem != "__init__")
    full = {str(room.relative_to(PACKAGE)): n for room, n in rooms.items() if n > MAX_FILES_IN_A_ROOM}
    assert not full, f"over {MAX_FILES_IN_A_ROOM} files, look for the seam: {full}"


def _functions(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_a_function_fits_a_screen() -> None:
    sizes = {key: n for module in modules().values() for key, n in _functions(module)}
    long = {key: n for key, n in sizes.items() if n > MAX_FUNCTION_LINES and key not in LONG_FUNCTIONS}
    assert not long, f"over {MAX_FUNCTION_LINES} lines: {long}"
    stale = [key for key in LONG_FUNCTIONS if sizes.get(key, 0) <= MAX_FUNCTION_LINES]
    assert not stale, f"no longer long, take them off the list: {stale}"


def test_only_the_terminal_front_prints() -> None:
    printing = [
        f"{name}:{node.lineno}"
        for name, module in modules().items()
        if not within(name, ("daiku.fronts.cli", "daiku.__main__"))
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not printing, f"stdout belongs to the protocol: {printing}"


@pytest.mark.slow
def test_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".dev" / "gen.py"), "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


FRONTS = (
    "daiku.fronts.cli",
    "daiku.fronts.lsp",
    "daiku.fronts.acp",
    "daiku.fronts.http",
    "daiku.eval",
    "daiku.doctor",
)
NOT_FOR_FRONTS = (
    "daiku.run",
    "daiku.app",
    "daiku.items",
    "daiku.edits.review",
    "daiku.playbook.background",
    "daiku.playbook.reflecting",
    "daiku.playbook.unlearnt",
)
FOR_FRONTS = ("daiku.items.forges", "daiku.items.listing", "daiku.items.working")


def test_fronts_start_and_steer_runs_by_the_library_alone() -> None:
    """R1.10: what a front may use of runs is in `daiku.library.fronts`, which the Runner stands on as well."""
    found = [
        f"{name} imports {each}"
        for name in modules()
        if within(name, FRONTS)
        for each in first_party(name)
        if within(each, NOT_FOR_FRONTS) and not is_pure(each) and not within(each, FOR_FRONTS)
    ]
    assert not found, found
