"""Detect packages of other languages and build tools, with their setup, test, and check commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from daiku.tools.rules.code.project import (
    Package,
    ProjectFolder,
    detect_javascript,
    detect_python,
    filter_safe_names,
    parse_json,
    read_pinned_version,
    read_table,
    to_safe_version,
)

Detector = Callable[[ProjectFolder, Sequence[ProjectFolder]], Package | None]
_GOALS = ("test", "tests", "check", "lint", "typecheck", "build", "all", "format", "fmt", "ci", "install")
_TARGET = re.compile(r"^([A-Za-z][\w.-]{0,39})\s*:(?![=:])", re.MULTILINE)
_RECIPE = re.compile(r"^@?([A-Za-z][\w-]{0,39})[^:=\n]{0,200}:(?!=)", re.MULTILINE)


def detect_packages(folder: ProjectFolder, above: Sequence[ProjectFolder] = ()) -> tuple[Package, ...]:
    """Return every package of a folder, in a fixed order. `above`: its parent folders, the nearest first."""
    detected = (detector(folder, above) for detector in DETECTORS)
    return tuple(package for package in detected if package is not None)


def detect_rust(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    if not folder.has("Cargo.toml") or any(parent.has("Cargo.toml") for parent in above):
        return None  # a workspace builds and tests its members
    location = f" --manifest-path {folder.path}/Cargo.toml" if folder.path else ""
    evidence = "Cargo.lock" if folder.has("Cargo.lock") else "Cargo.toml"
    pinned_to = read_pinned_version(folder, "rust-toolchain")
    return Package(
        folder.path,
        "Rust",
        "cargo",
        evidence,
        tests=(f"cargo test{location}",),
        checks=(f"cargo check{location}", f"cargo clippy{location}"),
        facts=(f"toolchain {pinned_to}",) if pinned_to else (),
    )


def detect_go(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    del above  # every go.mod is a separate module
    if not folder.has("go.mod"):
        return None
    command = f"go -C {folder.path}" if folder.path else "go"
    version = re.search(r"^go\s+([\d.]+)", folder.texts.get("go.mod", ""), re.MULTILINE)
    return Package(
        folder.path,
        "Go",
        "go",
        "go.mod",
        setup=f"{command} mod download",
        tests=(f"{command} test ./...",),
        checks=(f"{command} vet ./...", f"{command} build ./..."),
        facts=(f"Go {version[1]}",) if version else (),
    )


def detect_java(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    """Detect a Maven or Gradle project; its wrapper script is preferred."""
    gradle = folder.find_first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle")
    if folder.has("pom.xml") and not any(parent.has("pom.xml") for parent in above):
        program = _find_program(folder, "mvnw", "mvn")
        location = f" -f {folder.path}/pom.xml" if folder.path else ""
        return Package(
            folder.path,
            "Java",
            "Maven",
            "pom.xml",
            tests=(f"{program}{location} -q -B test",),
            checks=(f"{program}{location} -q -B compile",),
        )
    if gradle and not any(parent.find_first("settings.gradle.kts", "settings.gradle") for parent in above):
        program = _find_program(folder, "gradlew", "gradle")
        location = f" -p {folder.path}" if folder.path else ""
        language = "Kotlin or Java" if gradle.endswith(".kts") else "Java"
        return Package(
            folder.path,
            language,
            "Gradle",
            gradle,
            tests=(f"{program}{location} test",),
            checks=(f"{program}{location} check",),
        )
    return None


def _find_program(folder: ProjectFolder, wrapper: str, program: str) -> str:
    if not folder.has(wrapper):
        return program
    return f"{folder.path}/{wrapper}" if folder.path else f"./{wrapper}"


def detect_ruby(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    del above
    if not folder.has("Gemfile"):
        return None
    run = f"bundle exec --gemfile={folder.path}/Gemfile" if folder.path else "bundle exec"
    gemfile = folder.texts.get("Gemfile", "")
    uses_rspec = folder.has(".rspec") or "spec" in folder.folders or "rspec" in gemfile
    version = read_pinned_version(folder, ".ruby-version")
    return Package(
        folder.path,
        "Ruby",
        "Bundler",
        "Gemfile.lock" if folder.has("Gemfile.lock") else "Gemfile",
        setup="bundle install" + (f" --gemfile={folder.path}/Gemfile" if folder.path else ""),
        tests=(f"{run} rspec",) if uses_rspec else (f"{run} rake test",) if folder.has("Rakefile") else (),
        checks=(f"{run} rubocop",) if folder.has(".rubocop.yml") or "rubocop" in gemfile else (),
        facts=(f"Ruby {version}",) if version else (),
    )


def detect_php(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    del above
    if not folder.has("composer.json"):
        return None
    manifest = parse_json(folder, "composer.json")
    base = f"composer -d {folder.path}" if folder.path else "composer"
    scripts = filter_safe_names(read_table(manifest, "scripts"))
    tests = tuple(f"{base} run-script {name}" for name in scripts if name == "test")
    if not tests and folder.has("phpunit.xml", "phpunit.xml.dist"):
        inside = f"{folder.path}/" if folder.path else ""
        tests = (f"{inside}vendor/bin/phpunit" + (f" -c {folder.path}" if folder.path else ""),)
    version = to_safe_version(read_table(manifest, "require").get("php"))
    evidence = "composer.lock" if folder.has("composer.lock") else "composer.json"
    facts = (f"PHP {version}",) if version else ()
    return Package(folder.path, "PHP", "Composer", evidence, f"{base} install", tests, (), facts)


def detect_dotnet(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    ends = (".sln", ".slnx", ".csproj", ".fsproj", ".vbproj")
    project_files = sorted(name for name in folder.files if name.endswith(ends))
    main_file = next((name for end in ends for name in project_files if name.endswith(end)), "")
    if not main_file or any(name.endswith((".sln", ".slnx")) for parent in above for name in parent.files):
        return None
    if not re.fullmatch(r"[\w. +-]{1,80}", main_file):
        return None
    place = f"{folder.path}/{main_file}" if folder.path else main_file
    target = f'"{place}"' if " " in place else place
    return Package(
        folder.path,
        "C#" if not main_file.endswith((".fsproj", ".vbproj")) else ".NET",
        ".NET",
        main_file,
        f"dotnet restore {target}",
        (f"dotnet test {target}",),
        (f"dotnet build {target}",),
    )


def detect_deno(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    del above
    manifest = folder.find_first("deno.json", "deno.jsonc")
    if not manifest:
        return None
    location = f" --config {folder.path}/{manifest}" if folder.path else ""
    tests = (f"deno test{location}",)
    return Package(folder.path, "TypeScript", "Deno", manifest, tests=tests, checks=(f"deno lint{location}",))


def detect_others(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
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


def detect_make(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    """Detect a Makefile with well-known targets, such as `test`."""
    del above
    name = folder.find_first("Makefile", "makefile", "GNUmakefile")
    return _detect_goals(folder, name, "Make", f"make -C {folder.path}" if folder.path else "make", _TARGET)


def detect_just(folder: ProjectFolder, above: Sequence[ProjectFolder]) -> Package | None:
    """Detect a justfile with well-known recipes, such as `test`."""
    del above
    name = folder.find_first("justfile", "Justfile", ".justfile")
    command = f"just -f {folder.path}/{name} -d {folder.path}" if folder.path else "just"
    return _detect_goals(folder, name, "just", command, _RECIPE)


def _detect_goals(
    folder: ProjectFolder, name: str, manager: str, program: str, pattern: re.Pattern[str]
) -> Package | None:
    targets = set(pattern.findall(folder.texts.get(name, ""))) if name else set[str]()
    goals = [f"{program} {goal}" for goal in _GOALS if goal in targets]
    if not goals:
        return None
    tests = tuple(goal for goal in goals if goal.endswith((" test", " tests")))
    checks = tuple(goal for goal in goals if goal not in tests)
    return Package(folder.path, "tasks", manager, name, tests=tests, checks=checks)


DETECTORS: tuple[Detector, ...] = (
    detect_javascript,
    detect_deno,
    detect_python,
    detect_rust,
    detect_go,
    detect_java,
    detect_ruby,
    detect_php,
    detect_dotnet,
    detect_others,
    detect_make,
    detect_just,
)
"""In the order of the facts for a model."""
READ_FILES = frozenset(
    {
        "package.json", ".nvmrc", ".node-version", "pyproject.toml", "Pipfile", "setup.cfg", "setup.py",
        "requirements.txt", "requirements-dev.txt", "tox.ini", ".python-version", "rust-toolchain", "go.mod",
        "Gemfile", ".ruby-version", "composer.json", "Makefile", "makefile", "GNUmakefile", "justfile",
        "Justfile", ".justfile",
    }
)  # fmt: skip
"""Files whose text is read. For all others the name is enough."""
