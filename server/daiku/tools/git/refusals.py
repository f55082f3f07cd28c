"""Why git did not do what Daiku wanted of a remote repository or of its own copy: a kind and a sentence."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text
from daiku.tools.git.repository import STATUS_TOO_SLOW
from daiku.tools.shell.capture import TOO_LATE, ProgramResult

RefusalKind: TypeAlias = Literal[
    "unreachable",
    "unauthorized",
    "forbidden",
    "gone",
    "moved",
    "exists",
    "damaged",
    "full",
    "empty",
    "unusable",
    "slow",
]
"""`empty`: the repository has no commit yet; `slow`: git does not finish matching ignore patterns; `unreachable` may work later, or may have worked; `moved`: a branch is not where it was expected to be; `unusable`:
what was asked for can never work."""


@dataclass(frozen=True, slots=True)
class GitRefusal:
    """What was not done, as a value to decide by and a sentence for a person."""

    kind: RefusalKind
    message: Text


def refused(kind: RefusalKind) -> GitRefusal:
    """A refusal with the usual sentence of its kind."""
    return GitRefusal(kind, _said(kind))


def _said(kind: RefusalKind) -> Text:
    match kind:
        case "unreachable":
            return text("git.unreachable")
        case "unauthorized":
            return text("git.unauthorized")
        case "forbidden":
            return text("git.forbidden")
        case "gone":
            return text("git.gone")
        case "moved":
            return text("git.moved")
        case "exists":
            return text("git.exists")
        case "damaged":
            return text("git.damaged")
        case "full":
            return text("git.full")
        case "empty":
            return text("git.no_commit")
        case "unusable":
            return text("git.unusable")
        case "slow":
            return text("git.slow")


# What is looked for in git's own words, in lower case; the first kind that is found counts.
_KINDS: dict[RefusalKind, tuple[str, ...]] = {
    "full": ("no space left", "disk quota exceeded", "unable to write (?:file|new index|loose object)"),
    "forbidden": ("returned error: 403", "dubious ownership"),
    "unauthorized": ("authentication failed", "could not read (?:username|password)", "unable to get password",
                     "returned error: 401"),
    "gone": ("repository '' not found", r"returned error: (?:404|410|30\d)", "does not appear to be a git repository",
             "does not exist", "couldn't find remote ref", "no such remote ref", "unable to update url base"),
    "unreachable": (r"returned error: (?:408|429|5\d\d)", "could not resolve", "failed to connect", "couldn't connect",
                    "connection", "timed out", "remote end hung up", "rpc failed", "early eof", "unexpected disconnect",
                    r"\bssl\b", r"\btls\b", "certificate", "empty reply", r"curl \d+", "http/2 stream", "expected flush",
                    "unexpected eof", "too slow", "another git process", "protocol error"),
    "damaged": ("corrupt", "missing (?:blob|tree|commit)", "unable to (?:read|parse)", "bad (?:object|tree|ref|signature)",
                "loose object", "broken", "not a git repository", "fsck error", "index-pack failed", "inflate",
                "invalid object", "index file"),
    "moved": ("cannot lock ref", "but expected", "reference already exists"),
    "exists": ("already exists", "already checked out", "already used by worktree"),
}  # fmt: skip
_QUOTED = re.compile(r"'[^'\n]*'")


def refusal_of(done: ProgramResult, otherwise: RefusalKind = "unusable") -> GitRefusal | None:
    """What a git that failed tells, `otherwise` where it is nothing known; None where it did not fail."""
    if not done.code:
        return None
    if done.code == STATUS_TOO_SLOW:
        return refused("slow")
    if done.code == TOO_LATE:
        return refused("unreachable")
    # What a server says, and names that somebody chose, are no words of git's.
    own = [line for line in done.errors.lower().splitlines() if not line.startswith("remote:")]
    said = _QUOTED.sub("''", "\n".join(own))
    for kind, patterns in _KINDS.items():
        if any(re.search(pattern, said) for pattern in patterns):
            return refused(kind)
    return refused(otherwise)
