"""Judge an acceptance check by its text: its time limit, whether it can fail, whether it is a command."""

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
"""What is known of an exit code before anything is run: always 0, never 0, or only a run tells."""

LONGEST = 3600
"""Seconds that a check may take at most."""
_TIME = lazy(
    r"^[(（]\s*(\d{1,6})\s*(s|sec|secs|seconds?|秒|m|min|mins|minutes?|分|h|hours?|時間)\s*[)）]\s*",
    re.IGNORECASE,
)
_UNITS = {"s": 1, "秒": 1, "m": 60, "分": 60, "h": 3600, "時": 3600}


def split_time_limit(check: str) -> tuple[str, int]:
    """A check without the time limit written before it, and that limit in seconds; 0 where there is none."""
    found = _TIME.match(check.strip())
    if found is None:
        return check.strip(), 0
    return check.strip()[found.end() :], int(found[1]) * _UNITS[found[2][0].lower()]


def seconds_of(plan: Plan, check: str, usual: int) -> int:
    """How long a check may take: what its steps say, else `usual`; 0 is as long as a command may."""
    own = [s.check_seconds[check] for s in plan.steps if check in s.acceptance and check in s.check_seconds]
    return max(own, default=usual) or LONGEST


# ---- can it fail


def exit_status(command: str) -> Status:
    """Whether the exit code of a shell command is known before it is run: `true`, `echo …`, `… || true`."""
    return _Status(command).of(tree_of(command))


def discards_exit_code(command: str, is_check: Callable[[Sequence[str]], bool]) -> bool:
    """Return True if `command` may exit with 0 although its checks fail: `pytest || true`, `pytest | tail`."""
    tree = tree_of(command)
    return not tree.has_error and _Status(command, is_check).of(tree) != "fails"


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
"""Behind a pipe these end with 0 whatever came in."""
_BEFORE = frozenset({"command", "env", "time", "nice", "nohup", "exec", "builtin"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_NOTHING = lazy(
    r"\s*(?:pass|print\([^()]*\)|console\.log\([^()]*\)|(?:sys\.|process\.)?exit\(0?\)|import sys|;|\s)*\s*"
)


class _Status:
    """The walk over one command's syntax tree. Simple commands for which `fails` is true are assumed to fail."""

    def __init__(self, command: str, fails: Callable[[Sequence[str]], bool] = lambda _: False) -> None:
        self._fails = fails
        self._source = command.encode("utf-8", "replace")
        self._strict = self._pipefail = self._trapped = False

    def of(self, node: Node) -> Status:
        """The exit status of a tree that `tree_of` made of the command."""
        if node.has_error:
            return "open"
        match node.type:
            case "subshell":  # what it sets ends with it
                outer = self._strict, self._pipefail
                found = self._sequence(node)
                self._strict, self._pipefail = outer
                return found
            case "program" | "compound_statement":
                return self._sequence(node)
            case "list":
                return self._list(node)
            case "pipeline":
                return self._pipeline(node)
            case "negated_command":
                inner = self.of(node.named_children[-1])
                return {"passes": "fails", "fails": "passes", "open": "open"}[inner]  # pyright: ignore[reportReturnType]  # one of the three
            case "redirected_statement":
                body = node.child_by_field_name("body")
                return "open" if body is None else self.of(body)
            case "variable_assignment" | "variable_assignments":
                return "open" if b"$(" in self._bytes(node) or b"`" in self._bytes(node) else "passes"
            case "command":
                return self._command(self._words(node))
            case "test_command":
                return _tested(self._text(node).strip("[]").split())
            case _:
                return "open"

    def _sequence(self, node: Node) -> Status:
        found: Status = "passes"
        for child in node.children:
            if child.type == "&":
                found = "passes"
            elif child.is_named and child.type != "comment":
                now = self.of(child)
                if self._exits(child):
                    return now if not self._strict or found == "passes" else "open"
                found = _both(found, now) if self._strict else now
        return "open" if self._trapped else found

    def _exits(self, node: Node) -> bool:
        return node.type == "command" and self._words(node)[:1] == ("exit",)

    def _list(self, node: Node) -> Status:
        left, right = self.of(node.children[0]), self.of(node.children[-1])
        if node.children[1].type == "&&":
            return _both(left, right)
        return "passes" if "passes" in (left, right) else right if left == "fails" else "open"

    def _pipeline(self, node: Node) -> Status:
        parts = [child for child in node.named_children if child.type != "comment"]
        found: list[Status] = [self.of(part) for part in parts[:-1]]
        words = self._words(parts[-1]) if parts[-1].type == "command" else NO_WORDS
        last = self.of(parts[-1])
        if words[:1] and words[0] in _FILTERS:
            last = "passes"
        return reduce(_both, found, last) if self._pipefail else last

    def _command(self, words: tuple[str, ...]) -> Status:
        while words and (words[0] in _BEFORE or re.fullmatch(r"\w+=.*", words[0])):
            words = words[1:]
        if not words:
            return "passes"
        name, rest = words[0].rpartition("/")[2], words[1:]
        if inner := _find_inner_command(words):
            return _Status(inner, self._fails).of(tree_of(inner))
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
            return _tested([word for word in rest if word != "]"])
        if rest[:1] in (("-c",), ("-e",)) and re.fullmatch(r"(?:python|node|ruby|perl|php)[\d.]*", name):
            return "passes" if len(rest) > 1 and _NOTHING.fullmatch(rest[1]) else "open"
        return "open"

    def _words(self, node: Node) -> tuple[str, ...]:
        name = node.child_by_field_name("name")
        found = [simple.texts for simple in read_script(self._text(node)).commands]
        if name is None:
            return NO_WORDS
        return next((texts for texts in found if texts[:1] == (self._text(name).strip("\"'"),)), ("",))

    def _bytes(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    def _text(self, node: Node) -> str:
        return self._bytes(node).decode("utf-8", "replace")


def _find_inner_command(words: Sequence[str]) -> str:
    """Return the command line that a shell in `words` reads, also behind a wrapper: `timeout 9 bash -c 'pytest'`."""
    if words[0] == "eval":
        return " ".join(words[1:])
    shells = (at for at, word in enumerate(words[:-2]) if word.rpartition("/")[2] in _SHELLS)
    return next((words[at + 2] for at in shells if re.fullmatch(r"-\w*c", words[at + 1])), "")


def _both(left: Status, right: Status) -> Status:
    if "fails" in (left, right):
        return "fails"
    return "passes" if left == right == "passes" else "open"


def _tested(words: list[str]) -> Status:
    """A test of words that stand there: nothing that is done changes what it comes to."""
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


# ---- is it a command, and does it end


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
"""Programs whose use may look like a sentence: what they are asked for is a word like any other."""
_LOOKS = frozenset(
    {"test", "[", "grep", "egrep", "fgrep", "rg", "ls", "cat", "stat", "wc", "head", "diff", "cmp", "find"}
)
_ACTS = frozenset({"-exec", "-execdir", "-delete", "-ok", "-fprint", "--pre"})
_FILE_TEST = lazy(r"(?:!\s+)?\[\[?\s+(?:!\s+)?-[a-z]\s+[\w./-]+\s+\]\]?")
_ENDLESS = lazy(
    r"(?:^|[\s;&|])(?:tail\s+(?:\S+\s+)*-[fF]\b|watch\s|yes(?:\s|$)|sleep\s+inf|python[\d.]*\s+-m\s+http\.server)|\s--watch(?:\s|$|=true)"
)


def programs(check: str) -> tuple[str, ...]:
    """The programs that a command calls by their bare name, to be looked for where it is run."""
    names = (simple.words[0] for simple in read_script(check).commands if simple.words)
    return tuple(
        dict.fromkeys(
            word.text for word in names if word.plain and "/" not in word.text and word.text not in _BUILTINS
        )
    )


def only_looks(check: str) -> bool:
    """Return whether a check only inspects files and runs none of the project's code."""
    script = read_script(check)
    looking = all(
        simple.words and simple.words[0].text in _LOOKS and not _ACTS.intersection(simple.texts)
        for simple in script.commands
    )
    plain = bool(script.commands) and looking and not (script.doubts or script.writes)
    return (plain or _FILE_TEST.fullmatch(check.strip()) is not None) and exit_status(check) == "open"


def like_a_sentence(check: str) -> bool:
    """Whether a check whose program is not there reads as words, and not as a command."""
    words = check.strip().rstrip(".。!").split()
    first = words[0] if words else ""
    if first in _TOOLS or "/" in first:
        return False
    if not first.isascii():
        return True
    return len(words) > 1 and all(re.fullmatch(r"[A-Za-z]+(?:'[a-z]+)?[,:]?", word) for word in words[:2])


def objection(check: str) -> str:
    """Why a check cannot be taken as it is written, in words for whoever proposed it; empty where it can."""
    command, seconds = split_time_limit(check)
    if not command:
        return "`Check:` names nothing. Give one command, or leave the line out."
    if seconds > LONGEST:
        return f"`{command}` may take {seconds} s; a check may take at most {LONGEST // 60} minutes."
    if "\n" in command:
        return f"`{command.splitlines()[0]} …` has several lines. A check is one command on one line: put the others into a script, or make each a check of its own."
    status = exit_status(command)
    if status == "passes":
        return f"`{command}` passes whatever was done, so it proves nothing. Name a command that fails as long as the step is not done."
    if _ENDLESS.search(command):
        return f"`{command}` does not end by itself. Name a command that ends and says by its exit code whether the step is done."
    return ""
