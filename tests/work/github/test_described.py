"""Every request of the worker is held against GitHub's own descriptions, and they would find a wrong one."""

from __future__ import annotations

import json

import pytest

from tests.cases import for_each
from tests.services.github.described import fetch_descriptions, problems, problems_of_graphql

pytestmark = pytest.mark.slow


@for_each(
    ("method", "path", "query", "body", "wrong"),
    [
        ("GET", "/repos/o/r/issues", "labels=daiku&state=open", b"", ""),
        ("GET", "/repos/o/r/issues", "label=daiku", b"", "the query has label"),
        ("GET", "/repos/o/r/issuess", "", b"", "no such operation"),
        ("POST", "/repos/o/r/issues/1/labels", "", b'{"labels": ["x"]}', ""),
        ("POST", "/repos/o/r/pulls", "", b'{"title": "x", "base": "main"}', "required"),
    ],
)
def test_a_request_that_github_would_not_understand_is_found(
    method: str, path: str, query: str, body: bytes, wrong: str
) -> None:
    fetch_descriptions()
    found = problems(method, path, query, body)
    assert wrong in "; ".join(found)
    assert bool(found) == bool(wrong)


READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {%s: $id}) { clientMutationId } }"


@for_each(
    ("query", "variables", "wrong"),
    [
        ("query { viewer { login } }", {}, ""),
        ("query { viewer { logn } }", {}, "Cannot query field"),
        (READY % "pullRequestId", {"id": "PR_1"}, ""),
        (READY % "pullId", {"id": "PR_1"}, "is not defined by type"),
        (READY % "pullRequestId", {}, "was not provided"),
        (READY % "pullRequestId", {"id": "PR_1", "ids": []}, "no variable ids"),
    ],
)
def test_a_request_in_graphql_that_github_would_not_understand_is_found(
    query: str, variables: dict[str, object], wrong: str
) -> None:
    fetch_descriptions()
    found = problems_of_graphql(json.dumps({"query": query, "variables": variables}).encode())
    assert wrong in "; ".join(found)
    assert bool(found) == bool(wrong)
