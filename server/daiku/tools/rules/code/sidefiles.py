"""Classify files by path: tests, generated and third-party code, examples, scripts."""

from __future__ import annotations

import re
from typing import Literal

Side = Literal["", "script", "example", "generated", "foreign", "test"]
"""The kind of a side file; empty for the code itself."""

_TESTS = re.compile(
    r"(?:^|/)(?:tests?|testing|testdata|test[-_]?utils?|__tests__|__mocks__|mocks|specs?|e2e|fixtures?|__fixtures__"
    r"|snapshots?|__snapshots__|stories|cypress|playwright|integration[-_]tests?|androidTest)/"
    r"|(?:^|/)(?:test[-_.]|conftest\.py$)[^/]*$|(?:^|/)[^/]*[-_.](?:tests?|specs?|stories|mocks?)[-_.][^/]*$"
    r"|(?:^|/)\w+(?:Tests?|IT|Spec)\.(?:java|kt|scala|cs|swift)$"
    r"|(?:^|/)(?:[^/]*-)?(?:vi|je)?test[-.][^/]*$"
)
_GENERATED = re.compile(
    r"[._-](?:generated|gen|g|pb|min|bundle|freezed)\.[^/.]+$|_pb2(?:_grpc)?\.pyi?$|\.d\.[mc]?ts$"
    r"|(?:^|/)(?:generated|__generated__|gen|autogen|migrations)/"
)
_FOREIGN = re.compile(
    r"(?:^|/)(?:vendor|vendored|third[-_]?party|external|node_modules|bower_components|site-packages|dist|build|out"
    r"|\.yarn|_vendor|deps)/"
)
_EXAMPLES = re.compile(
    r"(?:^|/)(?:docs?|documentation|examples?|samples?|demos?|tutorials?|website|site|benchmarks?|bench|evals?"
    r"|playground|templates?)/"
)
_SCRIPTS = re.compile(
    r"(?:^|/)(?:scripts?|tools|hack|ci|\.github|\.storybook)/|(?:^|/)(?:setup|conf|noxfile|tasks|build)\.[^/.]+$"
    r"|\.config\.[^/.]+$|(?:^|/)\."
)
_KINDS: tuple[tuple[Side, re.Pattern[str]], ...] = (
    ("test", _TESTS),
    ("foreign", _FOREIGN),
    ("generated", _GENERATED),
    ("example", _EXAMPLES),
    ("script", _SCRIPTS),
)


def classify_path(path: str) -> Side:
    """Return the kind of `path` (from the root, with `/`); empty for the code itself."""
    for kind, pattern in _KINDS:
        if pattern.search(path):
            return kind
    return ""
