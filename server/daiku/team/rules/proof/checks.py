"""Judge an acceptance check by its text: time limit, whether it can fail, whether it is a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Literal

from tree_sitter import Node

from daiku.domain.work.plans import Plan
from daiku.guard.rules.commands.bash import read_script, tree_of
from daiku.texts.rules.patterns import lazy

Status = Literal["passes", "fails", "open"]
"""Prediction of an exit code: always 0, never 0, or known only after a run."""

LONGEST = 3600
"""Maximum seconds that a check may take."""
_TIME = lazy(
    r"^[(（]\s*(\d{1,6})\s*(s|sec|secs|seconds?|秒|m|min|mins|minutes?|分|h|hours?|時間)\s*[)）]\s*",
    re.IGNORECASE,
)
_UNITS = {"s": 1, "秒": 1, "m": 60, "分": 60, "h": 3600, "時": 3600}


def split_time_limit(check: str) -> tuple[str, int]:
    """Split a check into its command and the time limit before it in seconds; 0 if there is none."""
    match = _TIME.match(check.strip())
    if match is None:
        return check.strip(), 0
    return check.strip()[match.end() :], int(match[1]) * _UNITS[match[2][0].lower()]


def find_time_limit(plan: Plan, check: str, fallback: int) -> int:
    """Return the time limit of a check in seconds: that of its steps, else `default`; 0 means the maximum."""
    limits = [
        s.check_seconds[check] for s in plan.steps if check in s.acceptance and check in s.check_seconds
    ]
    return max(limits, default=fallback) or LONGEST


# ---- whether a check can fail


def predict_exit_status(command: str) -> Status:
    """Predict the exit status of a shell command: `true`, `echo …`, `… || true` always pass."""
    return _StatusWalk(command).predict(tree_of(command))


def can_discard_exit_code(command: str, is_check: Callable[[Sequence[str]], bool]) -> bool:
    """Return True if `command` may exit with 0 although its checks fail: `pytest || true`, `pytest | tail`."""
    tree = tree_of(command)
    return not tree.has_error and _StatusWalk(command, is_check).predict(tree) != "fails"


NO_WORDS: tuple[str, ...] = ()
_PASS = frozenset({"true", ":", "echo", "printf", "pwd", "date", "whoami", "hostname", "uname", "clear"})
_FILTERS = frozenset(
    {
        "cat",
        "tee",
        "head",
        "tail",
        "sort",
        "uniq",
        "wc",
        "tr",
        "cut",
        "nl",
        "column",
        "less",
        "more",
        "sed",
        "awk",
    }
)
"""Filters that exit with 0 at the end of a pipeline whatever their input."""
_BEFORE = frozenset({"command", "env", "time", "nice", "nohup", "exec", "builtin"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_NOTHING = lazy(
    r"\s*(?:pass|print\([^()]*\)|console\.log\([^()]*\)|(?:sys\.|process\.)?exit\(0?\)|import sys|;|\s)*\s*"
)


class _StatusWalk:
    """Walk over one command's syntax tree. Simple commands for which `fails` is true are assumed to fail."""

    def __init__(self, command: str, fails: Callable[[Sequence[str]], bool] = lambda _: False) -> None:
        self._fails = fails
        self._source = command.encode("utf-8", "replace")
        self._strict = self._pipefail = self._trapped = False

    def predict(self, node: Node) -> Status:
        """Return the exit status of a tree that `tree_of` built from the command."""
        if node.has_error:
            return "open"
        match node.type:
            case "subshell":  # its options end with it
                outer = self._strict, self._pipefail
                status = self._predict_sequence(node)
                self._strict, self._pipefail = outer
                return status
            case "program" | "compound_statement":
                return self._predict_sequence(node)
            case "list":
                return self._predict_list(node)
            case "pipeline":
                return self._predict_pipeline(node)
            case "negated_command":
                inner = self.predict(node.named_children[-1])
                return {"passes": "fails", "fails": "passes", "open": "open"}[inner]  # pyright: ignore[reportReturnType]  # one of the three
            case "redirected_statement":
                body = node.child_by_field_name("body")
                return "open" if body is None else self.predict(body)
            case "variable_assignment" | "variable_assignments":
                return (
                    "open" if b"$(" in self._read_bytes(node) or b"`" in self._read_bytes(node) else "passes"
                )
            case "command":
                return self._predict_command(self._read_words(node))
            case "test_command":
                return _predict_test(self._read_text(node).strip("[]").split())
            case _:
                return "open"

    def _predict_sequence(self, node: Node) -> Status:
        status: Status = "passes"
        for child in node.children:
            if child.type == "&":
                status = "passes"
            elif child.is_named and child.type != "comment":
                child_status = self.predict(child)
                if self._is_exit(child):
                    return child_status if not self._strict or status == "passes" else "open"
                status = _combine(status, child_status) if self._strict else child_status
        return "open" if self._trapped else status

    def _is_exit(self, node: Node) -> bool:
        return node.type == "command" and self._read_words(node)[:1] == ("exit",)

    def _predict_list(self, node: Node) -> Status:
        left, right = self.predict(node.children[0]), self.predict(node.children[-1])
        if node.children[1].type == "&&":
            return _combine(left, right)
        return "passes" if "passes" in (left, right) else right if left == "fails" else "open"

    def _predict_pipeline(self, node: Node) -> Status:
        parts = [child for child in node.named_children if child.type != "comment"]
        statuses: list[Status] = [self.predict(part) for part in parts[:-1]]
        words = self._read_words(parts[-1]) if parts[-1].type == "command" else NO_WORDS
        last = self.predict(parts[-1])
        if words[:1] and words[0] in _FILTERS:
            last = "passes"
        return reduce(_combine, statuses, last) if self._pipefail else last

    def _predict_command(self, words: tuple[str, ...]) -> Status:
        while words and (words[0] in _BEFORE or re.fullmatch(r"\w+=.*", words[0])):
            words = words[1:]
        if not words:
            return "passes"
        name, rest = words[0].rpartition("/")[2], words[1:]
        if inner := _find_inner_command(words):
            return _StatusWalk(inner, self._fails).predict(tree_of(inner))
        if name == "make" and not {"-i", "--ignore-errors"}.isdisjoint(rest):
            return "open"
        self._trapped |= name == "trap" and not {"EXIT", "0", "ERR"}.isdisjoint(rest)
        if self._fails(words):
            return "fails"
        if name == "set":
            self._strict |= any(re.match(r"-\w*e", word) for word in rest)
            self._pipefail |= "pipefail" in rest
            return "passes"
        if name in _PASS:
            return "passes"
        if name in ("false", "exit"):
            return (
                "fails" if name == "false" or rest[:1] not in ((), ("0",)) else "passes" if rest else "open"
            )
        if name in ("test", "["):
            return _predict_test([word for word in rest if word != "]"])
        if rest[:1] in (("-c",), ("-e",)) and re.fullmatch(r"(?:python|node|ruby|perl|php)[\d.]*", name):
            return "passes" if len(rest) > 1 and _NOTHING.fullmatch(rest[1]) else "open"
        return "open"

    def _read_words(self, node: Node) -> tuple[str, ...]:
        name = node.child_by_field_name("name")
        commands = [simple.texts for simple in read_script(self._read_text(node)).commands]
        if name is None:
            return NO_WORDS
        return next(
            (texts for texts in commands if texts[:1] == (self._read_text(name).strip("\"'"),)), ("",)
        )

    def _read_bytes(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    def _read_text(self, node: Node) -> str:
        return self._read_bytes(node).decode("utf-8", "replace")


def _find_inner_command(words: Sequence[str]) -> str:
    """Return the command line that a shell in `words` runs, also in a wrapper: `timeout 9 bash -c 'pytest'`."""
    if words[0] == "eval":
        return " ".join(words[1:])
    shells = (index for index, word in enumerate(words[:-2]) if word.rpartition("/")[2] in _SHELLS)
    return next((words[index + 2] for index in shells if re.fullmatch(r"-\w*c", words[index + 1])), "")


def _combine(left: Status, right: Status) -> Status:
    if "fails" in (left, right):
        return "fails"
    return "passes" if left == right == "passes" else "open"


def _predict_test(words: list[str]) -> Status:
    """Predict a test of constant words, whose result cannot change."""
    if any("$" in word or "`" in word or "*" in word for word in words):
        return "open"
    match [word.strip("\"'") for word in words]:
        case ["-e" | "-d" | "-r" | "-x", "." | ".." | "/" | "./"]:
            return "passes"
        case ["-n", word] | [word] if not word.startswith("-"):
            return "passes" if word else "fails"
        case [left, "=" | "==" | "-eq", right]:
            return "passes" if left == right else "fails"
        case [left, "!=" | "-ne", right]:
            return "passes" if left != right else "fails"
        case _:
            return "open"


# ---- whether a check is a command, and ends


_BUILTINS = frozenset(
    {
        "test", "[", "[[", "cd", "set", "export", "source", ".", "eval", "exec", "type", "read", "wait", "shift", "trap", "unset",
        "local", "declare", "return", "exit", "true", "false", ":", "echo", "printf", "pwd", "command", "builtin", "hash", "let",
        "mapfile", "readarray", "shopt", "ulimit", "umask", "alias", "bg", "fg", "jobs", "kill", "time", "if", "for", "while", "case",
    }
)  # fmt: skip
_TOOLS = frozenset(
    {
        "npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "cargo", "go", "make", "cmake", "ninja", "just", "task", "mvn", "gradle",
        "sbt", "dotnet", "swift", "zig", "mix", "rake", "bundle", "rspec", "composer", "phpunit", "pytest", "python", "python3", "pip",
        "uv", "poetry", "tox", "nox", "ruff", "mypy", "black", "pyright", "docker", "kubectl", "terraform", "helm", "bazel", "jest",
        "vitest", "mocha", "tsc", "eslint", "prettier", "biome", "flutter", "dart", "ruby", "php", "perl", "java", "javac", "gcc", "cc",
        "clang", "g++", "ctest", "git", "meson", "stack", "cabal", "ghc", "lein", "nim", "crystal", "julia", "Rscript", "latexmk",
    }
)  # fmt: skip
"""Programs whose command lines may look like a sentence, as their arguments are plain words."""
_LOOKS = frozenset(
    {"test", "[", "grep", "egrep", "fgrep", "rg", "ls", "cat", "stat", "wc", "head", "diff", "cmp", "find"}
)
_ACTS = frozenset({"-exec", "-execdir", "-delete", "-ok", "-fprint", "--pre"})
_FILE_TEST = lazy(r"(?:!\s+)?\[\[?\s+(?:!\s+)?-[a-z]\s+[\w./-]+\s+\]\]?")
_ENDLESS = lazy(
    r"(?:^|[\s;&|])(?:tail\s+(?:\S+\s+)*-[fF]\b|watch\s|yes(?:\s|$)|sleep\s+inf|python[\d.]*\s+-m\s+http\.server)|\s--watch(?:\s|$|=true)"
)


def find_programs(check: str) -> tuple[str, ...]:
    """Return the programs that a command calls by bare name, to look them up on the PATH."""
    names = (simple.words[0] for simple in read_script(check).commands if simple.words)
    return tuple(
        dict.fromkeys(
            word.text for word in names if word.plain and "/" not in word.text and word.text not in _BUILTINS
        )
    )


def is_read_only_check(check: str) -> bool:
    """Return True if a check only reads files and runs none of the project's code."""
    script = read_script(check)
    reads_only = all(
        simple.words and simple.words[0].text in _LOOKS and not _ACTS.intersection(simple.texts)
        for simple in script.commands
    )
    is_plain = bool(script.commands) and reads_only and not (script.doubts or script.writes)
    is_file_test = _FILE_TEST.fullmatch(check.strip()) is not None
    return (is_plain or is_file_test) and predict_exit_status(check) == "open"


def is_sentence_like(check: str) -> bool:
    """Return True if a check with an unknown program reads like a sentence instead of a command."""
    words = check.strip().rstrip(".。!").split()
    first = words[0] if words else ""
    if first in _TOOLS or "/" in first:
        return False
    if not first.isascii():
        return True
    return len(words) > 1 and all(re.fullmatch(r"[A-Za-z]+(?:'[a-z]+)?[,:]?", word) for word in words[:2])


def find_check_problem(check: str) -> str:
    """Return why a check is rejected, for its author; empty if it is accepted."""
    command, seconds = split_time_limit(check)
    if not command:
        return "`Check:` names nothing. Give one command, or leave the line out."
    if seconds > LONGEST:
        return f"`{command}` may take {seconds} s; a check may take at most {LONGEST // 60} minutes."
    if "\n" in command:
        return f"`{command.splitlines()[0]} …` has several lines. A check is one command on one line: put the others into a script, or make each a check of its own."
    status = predict_exit_status(command)
    if status == "passes":
        return f"`{command}` passes whatever was done, so it proves nothing. Name a command that fails as long as the step is not done."
    if _ENDLESS.search(command):
        return f"`{command}` does not end by itself. Name a command that ends and says by its exit code whether the step is done."
    return ""
