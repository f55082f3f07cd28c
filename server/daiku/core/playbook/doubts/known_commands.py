"""Commands that everybody writes alike: test runners, builders, linters in their plain form; and programs that are known."""

from __future__ import annotations

from daiku.core.commands.bash import read_script
from daiku.core.commands.tables.readonly import PROGRAMS as READERS
from daiku.core.text.patterns import lazy

_STEPS = "test|tests|build|lint|check|typecheck|type-check|types|format|fmt|gen|generate|ci|unit|coverage|compile|verify"
_FORMS = lazy(
    r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye) run |bundle exec |npx |pnpm exec |python3? -m )?"
    r"(?:pytest|py\.test|unittest|unittest discover|tox|nox|rspec|jest|vitest|vitest run|mocha|ava|ctest|phpunit|mypy|pyright"
    r"|basedpyright|tsc|eslint|flake8|pylint|ruff|ruff check|ruff format|black|isort|prettier|biome check)"
    rf"|(?:npm|pnpm|yarn|bun|deno) (?:run )?(?:{_STEPS})|npm t"
    rf"|(?:make|just|task|rake|mix|gradle|\./gradlew|mvn|\./mvnw|dotnet|swift|zig build|nox -s|tox -e) (?:{_STEPS})|make"
    r"|cargo (?:test|build|check|clippy|fmt|doc|nextest run)|go (?:test|build|vet)"
    r"|npm (?:ci|install)|pnpm install|yarn install|yarn|bun install|uv sync|poetry install|pdm install|bundle install"
    r"|go mod (?:download|tidy)|cargo fetch|pip3? install -e \.|python3? -m pip install -e \."
)
_EXTRAS = frozenset(
    ["-q", "-v", "-vv", "-x", "-s", "-ra", "--verbose", "--quiet", "--noEmit", "--all", "--all-targets", "--workspace", "--release",
     "--check", "--fix", "--frozen", "--locked", "--run", "--no-watch", ".", "./...", "tests", "test", "src", "tests/", "src/"]
)  # fmt: skip
"""Words behind such a command that name nothing of anybody's own."""
_STEP = lazy(_STEPS)
_COMMON = frozenset(
    [
        "run",
        "exec",
        "x",
        "all",
        "dev",
        "start",
        "install",
        "ci",
        "i",
        "doc",
        "docs",
        "clean",
        "main",
        "discover",
    ]
)
_PROGRAMS = frozenset(
    ["npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "python", "python3", "pip", "pip3", "uv", "uvx", "poetry", "pdm",
     "hatch", "pipenv", "rye", "tox", "nox", "pytest", "make", "just", "task", "cmake", "ninja", "cargo", "rustc", "go",
     "gofmt", "mvn", "gradle", "java", "javac", "dotnet", "swift", "zig", "mix", "rake", "bundle", "rspec", "ruby", "gem",
     "composer", "php", "jest", "vitest", "mocha", "tsc", "eslint", "prettier", "biome", "ruff", "mypy", "pyright",
     "basedpyright", "black", "isort", "flake8", "pylint", "docker", "podman", "kubectl", "helm", "terraform", "git", "gh",
     "bazel", "sbt", "stack", "cabal", "ghc", "flutter", "dart", "gcc", "clang", "cc", "g++", "clang++", "sh", "bash", "zsh",
     "env", "perl", "sed", "awk", "sqlite3", "psql", "tar", "curl", "wget", "pre-commit", "alembic", "django-admin", "flask",
     "uvicorn", "rails", "protoc", "buf"]
)  # fmt: skip
_CHECKERS = frozenset(
    ["pytest", "py.test", "jest", "vitest", "mocha", "ava", "rspec", "phpunit", "ctest", "tsc", "eslint", "prettier", "biome",
     "ruff", "mypy", "pyright", "basedpyright", "black", "isort", "flake8", "pylint", "gofmt"]
)  # fmt: skip


def is_well_known(command: str) -> bool:
    """Whether `command` is one plain call in a form that everybody uses: nothing in it can be a stranger's idea."""
    script = read_script(command)
    if script.doubts or script.writes or len(script.commands) != 1 or script.commands[0].assigned:
        return False
    words = list(script.commands[0].texts)
    if " ".join(words) != " ".join(command.split()):
        return False
    while len(words) > 1 and words[-1] in _EXTRAS and not _fits(words):
        words.pop()
    return _fits(words)


def is_known_program(name: str) -> bool:
    """Whether a program is one that many projects use; one below a folder is the project's own."""
    return name in _PROGRAMS or name in READERS


def is_checker(name: str) -> bool:
    """Whether a program looks at the files of a project that it is named: tests, types, style."""
    return name in _CHECKERS


def is_common_word(word: str) -> bool:
    """Whether a word behind a program names nothing of anybody's own: a usual step, or what stands behind it."""
    return word in _EXTRAS or word in _COMMON or _STEP.fullmatch(word) is not None


def _fits(words: list[str]) -> bool:
    return _FORMS.fullmatch(" ".join(words)) is not None
