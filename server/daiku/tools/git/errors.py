"""Classify git's error output; only the kind is passed on, since git's words quote settings and files."""

from __future__ import annotations

import re

# All that is passed on: what is looked for in lower case, and the kind that it is told as.
_KINDS: tuple[tuple[str, str], ...] = (
    (r"not a git repository", "this is no git repository"),
    (r"does not have any commits yet|bad default revision", "there are no commits yet"),
    (r"unknown revision|bad revision|ambiguous argument|invalid object name|not a valid object name", "there is no such commit, branch or range"),
    (r"did not match any file", "no file of the repository matches these paths"),
    (r"outside repository", "the path lies outside the repository"),
    (r"ignored by one of your \.gitignore", "these paths are ignored by .gitignore"),
    (r"tell me who you are|empty ident|auto-detect email", "git does not know who commits: user.name and user.email have to be set"),
    (r"empty commit message", "the message is empty"),
    (r"index\.lock|another git process|unable to create '.*\.lock'", "another git process is at work in this repository, or its lock was left behind"),
    (r"dubious ownership", "the repository belongs to another user of this machine"),
    (r"unmerged|you have not concluded|resolve", "there are conflicts that are not resolved"),
    (r"bad config|does not contain a section|key does not contain|bad numeric|bad boolean|invalid value|missing value|config file|include", "the repository's settings cannot be read"),
    (r"already exists", "it exists already"),
    (r"already (?:checked out|used by worktree)", "it is checked out elsewhere already"),
    (r"patch (?:failed|does not apply)|corrupt patch", "the patch does not fit"),
    (r"permission denied|operation not permitted|read-only file system", "a file may not be read or written"),
    (r"no space left", "the disk is full"),
    (r"corrupt|missing blob|unable to read|bad object|loose object|bad tree|broken", "the repository is damaged"),
    (r"transport|protocol|remote", "it needs another repository, and Daiku's git reaches none"),
)  # fmt: skip


def kind_of(error: str) -> str:
    """What kind of failure git's words on stderr tell of; empty where there are none."""
    if not error.strip():
        return ""
    low = error.lower()
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, low)), "")
    return f"Git says: {kind}." if kind else "Git failed for a reason that is not passed on."
