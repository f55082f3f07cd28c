"""Detect packages of other languages and build tools, with their setup, test and check commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from daiku.tools.rules.code.project import (
    Folder,
    Package,
    javascript,
    json_of,
    pinned_version,
    python,
    safe_names,
    sub_table,
    version_of,
)

Kind = Callable[[Folder, Sequence[Folder]], Package | None]
_GOALS = ("test", "tests", "check", "lint", "typecheck", "build", "all", "format", "fmt", "ci", "install")
_TARGET = re.compile(r"^([A-Za-z][\w.-]{0,39})\s*:(?![=:])", re.MULTILINE)
_RECIPE = re.compile(r"^@?([A-Za-z][\w-]{0,39})[^:=\n]{0,200}:(?!=)", re.MULTILINE)


def packages_of(folder: Folder, above: Sequence[Folder] = ()) -> tuple[Package, ...]:
    """Every package of a folder, in a fixed order; `above` are the folders that it lies in, nearest first."""
    found = (kind(folder, above) for kind in KINDS)
    return tuple(package for package in found if package is not None)


def rust(folder: Folder, above: Sequence[Folder]) -> Package | None:
    if not folder.has("Cargo.toml") or any(each.has("Cargo.toml") for each in above):
        return None  # a member of a workspace is built and tested with it
    where = f" --manifest-path {folder.path}/Cargo.toml" if folder.path else ""
    why = "Cargo.lock" if folder.has("Cargo.lock") else "Cargo.toml"
    pinned_to = pinned_version(folder, "rust-toolchain")
    return Package(
        folder.path,
        "Rust",
        "cargo",
        why,
        tests=(f"cargo test{where}",),
        checks=(f"cargo check{where}", f"cargo clippy{where}"),
        facts=(f"toolchain {pinned_to}",) if pinned_to else (),
    )


def go(folder: Folder, above: Sequence[Folder]) -> Package | None:
    del above  # every go.mod is a module of its own
    if not folder.has("go.mod"):
        return None
    inside = f"go -C {folder.path}" if folder.path else "go"
    said = re.search(r"^go\s+([\d.]+)", folder.texts.get("go.mod", ""), re.MULTILINE)
    return Package(
        folder.path,
        "Go",
        "go",
        "go.mod",
        setup=f"{inside} mod download",
        tests=(f"{inside} test ./...",),
        checks=(f"{inside} vet ./...", f"{inside} build ./..."),
        facts=(f"Go {said[1]}",) if said else (),
    )


def java(folder: Folder, above: Sequence[Folder]) -> Package | None:
    """Detect a Maven or Gradle project; its wrapper script is preferred."""
    gradle = folder.first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle")
    if folder.has("pom.xml") and not any(each.has("pom.xml") for each in above):
        program = _wrapper(folder, "mvnw", "mvn")
        where = f" -f {folder.path}/pom.xml" if folder.path else ""
        return Package(
            folder.path,
            "Java",
            "Maven",
            "pom.xml",
            tests=(f"{program}{where} -q -B test",),
            checks=(f"{program}{where} -q -B compile",),
        )
    if gradle and not any(each.first("settings.gradle.kts", "settings.gradle") for each in above):
        program = _wrapper(folder, "gradlew", "gradle")
        where = f" -p {folder.path}" if folder.path else ""
        language = "Kotlin or Java" if gradle.endswith(".kts") else "Java"
        return Package(
            folder.path,
            language,
            "Gradle",
            gradle,
            tests=(f"{program}{where} test",),
            checks=(f"{program}{where} check",),
        )
    return None


def _wrapper(folder: Folder, wrapper: str, program: str) -> str:
    if not folder.has(wrapper):
        return program
    return f"{folder.path}/{wrapper}" if folder.path else f"./{wrapper}"


def ruby(folder: Folder, above: Sequence[Folder]) -> Package | None:
    del above
    if not folder.has("Gemfile"):
        return None
    run = f"bundle exec --gemfile={folder.path}/Gemfile" if folder.path else "bundle exec"
    says = folder.texts.get("Gemfile", "")
    specs = folder.has(".rspec") or "spec" in folder.folders or "rspec" in says
    version = pinned_version(folder, ".ruby-version")
    return Package(
        folder.path,
        "Ruby",
        "Bundler",
        "Gemfile.lock" if folder.has("Gemfile.lock") else "Gemfile",
        setup="bundle install" + (f" --gemfile={folder.path}/Gemfile" if folder.path else ""),
        tests=(f"{run} rspec",) if specs else (f"{run} rake test",) if folder.has("Rakefile") else (),
        checks=(f"{run} rubocop",) if folder.has(".rubocop.yml") or "rubocop" in says else (),
        facts=(f"Ruby {version}",) if version else (),
    )


def php(folder: Folder, above: Sequence[Folder]) -> Package | None:
    del above
    if not folder.has("composer.json"):
        return None
    manifest = json_of(folder, "composer.json")
    base = f"composer -d {folder.path}" if folder.path else "composer"
    scripts = safe_names(sub_table(manifest, "scripts"))
    tests = tuple(f"{base} run-script {name}" for name in scripts if name == "test")
    if not tests and folder.has("phpunit.xml", "phpunit.xml.dist"):
        inside = f"{folder.path}/" if folder.path else ""
        tests = (f"{inside}vendor/bin/phpunit" + (f" -c {folder.path}" if folder.path else ""),)
    version = version_of(sub_table(manifest, "require").get("php"))
    why = "composer.lock" if folder.has("composer.lock") else "composer.json"
    known = (f"PHP {version}",) if version else ()
    return Package(folder.path, "PHP", "Composer", why, f"{base} install", tests, (), known)


def dotnet(folder: Folder, above: Sequence[Folder]) -> Package | None:
    ends = (".sln", ".slnx", ".csproj", ".fsproj", ".vbproj")
    there = sorted(name for name in folder.files if name.endswith(ends))
    own = next((name for end in ends for name in there if name.endswith(end)), "")
    if not own or any(name.endswith((".sln", ".slnx")) for each in above for name in each.files):
        return None
    if not re.fullmatch(r"[\w. +-]{1,80}", own):
        return None
    place = f"{folder.path}/{own}" if folder.path else own
    target = f'"{place}"' if " " in place else place
    return Package(
        folder.path,
        "C#" if not own.endswith((".fsproj", ".vbproj")) else ".NET",
        ".NET",
        own,
        f"dotnet restore {target}",
        (f"dotnet test {target}",),
        (f"dotnet build {target}",),
    )


def deno(folder: Folder, above: Sequence[Folder]) -> Package | None:
    del above
    manifest = folder.first("deno.json", "deno.jsonc")
    if not manifest:
        return None
    where = f" --config {folder.path}/{manifest}" if folder.path else ""
    tests = (f"deno test{where}",)
    return Package(folder.path, "TypeScript", "Deno", manifest, tests=tests, checks=(f"deno lint{where}",))


def others(folder: Folder, above: Sequence[Folder]) -> Package | None:
    """Detect a package of a language with one manifest and one tool, such as Elixir, Swift or CMake."""
    del above
    if folder.path:
        return None
    for manifest, language, manager, tests, checks in (
        ("mix.exs", "Elixir", "Mix", "mix test", "mix compile"),
        ("Package.swift", "Swift", "SwiftPM", "swift test", "swift build"),
        ("build.zig", "Zig", "zig", "zig build test", "zig build"),
        ("build.sbt", "Scala", "sbt", "sbt test", "sbt compile"),
        ("stack.yaml", "Haskell", "Stack", "stack test", "stack build"),
        ("pubspec.yaml", "Dart", "pub", "dart test", "dart analyze"),
        ("CMakeLists.txt", "C or C++", "CMake", "ctest --test-dir build", "cmake -S . -B build"),
        ("meson.build", "C or C++", "Meson", "meson test -C build", "meson setup build"),
    ):
        if folder.has(manifest):
            return Package("", language, manager, manifest, tests=(tests,), checks=(checks,))
    return None


def make(folder: Folder, above: Sequence[Folder]) -> Package | None:
    """Detect a Makefile with well-known targets, such as `test`."""
    del above
    name = folder.first("Makefile", "makefile", "GNUmakefile")
    return _goals(folder, name, "Make", f"make -C {folder.path}" if folder.path else "make", _TARGET)


def just(folder: Folder, above: Sequence[Folder]) -> Package | None:
    """Detect a justfile with well-known recipes, such as `test`."""
    del above
    name = folder.first("justfile", "Justfile", ".justfile")
    where = f"just -f {folder.path}/{name} -d {folder.path}" if folder.path else "just"
    return _goals(folder, name, "just", where, _RECIPE)


def _goals(folder: Folder, name: str, manager: str, program: str, pattern: re.Pattern[str]) -> Package | None:
    there = set(pattern.findall(folder.texts.get(name, ""))) if name else set[str]()
    goals = [f"{program} {goal}" for goal in _GOALS if goal in there]
    if not goals:
        return None
    tests = tuple(goal for goal in goals if goal.endswith((" test", " tests")))
    checks = tuple(goal for goal in goals if goal not in tests)
    return Package(folder.path, "tasks", manager, name, tests=tests, checks=checks)


KINDS: tuple[Kind, ...] = (javascript, deno, python, rust, go, java, ruby, php, dotnet, others, make, just)
"""In the order in which a model is told of them."""
READ = frozenset(
    {
        "package.json", ".nvmrc", ".node-version", "pyproject.toml", "Pipfile", "setup.cfg", "setup.py",
        "requirements.txt", "requirements-dev.txt", "tox.ini", ".python-version", "rust-toolchain", "go.mod",
        "Gemfile", ".ruby-version", "composer.json", "Makefile", "makefile", "GNUmakefile", "justfile",
        "Justfile", ".justfile",
    }
)  # fmt: skip
"""The files whose text is looked at; of all others the name is enough."""
