"""What "always" remembers of a command, and never more than that."""

from __future__ import annotations

import re
import shlex

from daiku.core.bash import Word
from daiku.core.rules import risky

# How many words "always" remembers, where more would be fatigue and fewer would be too much.
_ONE = frozenset(
    [
        "pytest",
        "tox",
        "nox",
        "mypy",
        "ruff",
        "pyright",
        "basedpyright",
        "black",
        "isort",
        "flake8",
        "pylint",
        "tsc",
        "eslint",
        "prettier",
        "jest",
        "vitest",
        "mocha",
        "biome",
        "gofmt",
        "rustfmt",
        "phpunit",
        "rspec",
        "rubocop",
        "ctest",
        "ninja",
        "golangci-lint",
        "swiftlint",
        "shellcheck",
        "hadolint",
        "yamllint",
        "markdownlint",
        "mkdir",
    ]
)
_TWO = frozenset(
    [
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "cargo",
        "go",
        "dotnet",
        "git",
        "make",
        "just",
        "task",
        "rake",
        "mix",
        "swift",
        "flutter",
        "dart",
        "gradle",
        "./gradlew",
        "gradlew",
        "mvn",
        "./mvnw",
        "sbt",
        "bazel",
        "cmake",
        "meson",
        "composer",
        "docker-compose",
        "deno",
        "pip",
        "uv",
        "poetry",
        "pdm",
        "hatch",
        "bundle",
        "gem",
        "brew",
        "terraform",
    ]
)
_THREE = frozenset(
    {("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("uv", "run"), ("poetry", "run"), ("pdm", "run"),
     ("hatch", "run"), ("bundle", "exec"), ("deno", "task"), ("uv", "pip"), ("docker", "compose"), ("cargo", "run")}
)  # fmt: skip
_EXACT_SECOND = frozenset(
    [
        "exec",
        "x",
        "dlx",
        "config",
        "publish",
        "login",
        "filter-branch",
        "bisect",
        "submodule",
        "clean",
        "reset",
        "branch",
        "stash",
        "checkout",
        "restore",
        "push",
        "rebase",
        "rm",
        "gc",
        "update-ref",
        "tag",
        "reflog",
        "remote",
        "worktree",
        "destroy",
        "apply",
        "yank",
        "owner",
        "unpublish",
        "cache",
        "uninstall",
        "remove",
    ]
)
_PYTHON = re.compile(r"^(?:python|python3|python3\.\d+|py)$")
_PLAIN_WORD = re.compile(r"[\w:./@-]+")


def memory(words: tuple[Word, ...]) -> str:
    """What "always" remembers of a command: its first words where the program is known to be a tool of
    developers, else the exact command; empty where it must not be remembered."""
    texts = tuple(w.text for w in words)
    name = texts[0] if texts else ""
    if not name or any(not w.plain or w.glob for w in words):
        return ""
    exact = shlex.join(texts)
    if risky(words):
        return ""
    count = _length(name, texts)
    if count > len(texts) or any(
        not _PLAIN_WORD.fullmatch(t) or t.startswith("-") for t in texts[1:count] if t != "-m"
    ):
        return exact
    return shlex.join(texts[:count]) if count else exact


def _length(name: str, texts: tuple[str, ...]) -> int:
    second = texts[1] if len(texts) > 1 else ""
    if _PYTHON.match(name):
        if second == "-m":
            return 3
        return 2 if second.endswith(".py") else 0
    if name == "node":
        return 2 if second.endswith((".js", ".mjs", ".cjs", ".ts")) else 0
    if name in _ONE:
        return 1
    if (name, second) in _THREE:
        return 3
    if name in _TWO and second not in _EXACT_SECOND:
        return 2 if second else 1
    return 0
