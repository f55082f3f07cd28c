"""What git says when it fails, and the kind that it is taken for; a server's own words decide nothing."""

from __future__ import annotations

import pytest

from daiku.texts.text import Text
from daiku.tools.git.ownrun import RefusalKind, find_refusal
from daiku.tools.shell.capture import TIMED_OUT, ProgramResult

SAID: list[tuple[str, RefusalKind]] = [
    ("fatal: Authentication failed for 'http://h/o/r.git/'", "unauthorized"),
    ("fatal: could not read Username for 'https://h': terminal prompts disabled", "unauthorized"),
    ("fatal: unable to access 'http://h/r/': The requested URL returned error: 403", "forbidden"),
    ("fatal: repository 'http://h/r/' not found", "gone"),
    ("fatal: couldn't find remote ref refs/pull/8/head", "gone"),
    ("fatal: unable to access 'http://h/r/': The requested URL returned error: 301", "gone"),
    ("fatal: unable to access 'https://h/r/': Could not resolve host: h", "unreachable"),
    ("fatal: unable to access 'https://h/r/': The requested URL returned error: 429", "unreachable"),
    ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", "unreachable"),
    ("fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", "unreachable"),
    ("fatal: write error: No space left on device\nfatal: index-pack failed", "full"),
    ("error: unable to write file big\nfatal: Could not reset index file to revision 'HEAD'.", "full"),
    ("error: object file objects/aa/bb is empty\nfatal: loose object aabb is corrupt", "damaged"),
    ("fatal: not a git repository: '/x'", "damaged"),
    ("error: object 1: hasDotgit: contains '.git'\nfatal: fsck error in packed object", "damaged"),
    ("fatal: cannot lock ref 'refs/heads/x': is at 1 but expected 2", "moved"),
    ("fatal: '/x' already exists", "exists"),
    ("fatal: something new", "unusable"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kind"), SAID)
def test_a_failure_is_known_by_gits_words(said: str, kind: RefusalKind) -> None:
    found = find_refusal(ProgramResult(128, said))
    assert found is not None
    assert found.kind == kind
    assert isinstance(found.message, Text)
    assert found.message.id == f"git.{kind}"


@pytest.mark.parametrize(
    "words", ["remote: No space left on device", "fatal: repository 'corrupt connection' is odd"]
)
def test_what_others_chose_to_say_decides_nothing(words: str) -> None:
    found = find_refusal(ProgramResult(128, words))
    assert found is not None
    assert found.kind == "unusable"


def test_what_took_too_long_may_work_later_and_success_is_no_refusal() -> None:
    late = find_refusal(ProgramResult(TIMED_OUT, "", "it did not end within 1 s"))
    assert late is not None
    assert late.kind == "unreachable"
    assert find_refusal(ProgramResult(0, "warning: corrupt")) is None
