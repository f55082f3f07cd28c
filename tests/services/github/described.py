"""GitHub's own descriptions of its interface: whether a request, in GraphQL or not, is one that GitHub would take."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from jsonschema import Draft4Validator
from jsonschema.validators import extend

from tests.tools.mcp.packages import CACHE, INSTALL_SECONDS, from_npm, node, npm

PACKAGE = "@octokit/openapi@23.0.2"
SCHEMA = ("@octokit/graphql-schema@15.26.1", "graphql@16.15.0")
_MEMBER = "package/generated/api.github.com.json"
# OpenAPI 3.0 is a dialect of JSON Schema; what its words mean beyond that is no matter in what is sent here.
_Validator = extend(Draft4Validator)


def fetch_descriptions() -> None:
    """Have both at hand before the first request; the test is skipped where they cannot be had."""
    _place()
    node()
    from_npm(*SCHEMA)


def described() -> dict[str, Any]:
    """What there is beside GraphQL."""
    return _load(_place())


def problems(method: str, path: str, query: str, body: bytes) -> tuple[str, ...]:
    """What GitHub would not understand of a request; nothing where all is well."""
    root = described()
    found = _operation(root, method, path)
    if found is None:
        return (f"{method} {path}: there is no such operation",)
    said = [
        f"{method} {path}: {each}" for each in (*_of_query(root, found, query), *_of_body(root, found, body))
    ]
    return tuple(said)


def problems_of_graphql(body: bytes) -> tuple[str, ...]:
    """What GitHub would not understand of a request in GraphQL; nothing where all is well."""
    sent = json.loads(body)
    return _checked(sent["query"], json.dumps(sent.get("variables", {})))


@cache
def _checked(query: str, variables: str) -> tuple[str, ...]:
    argv = [node(), str(Path(__file__).with_name("query.mjs")), str(from_npm(*SCHEMA))]
    sent = json.dumps({"query": query, "variables": json.loads(variables)})
    done = subprocess.run(argv, input=sent, capture_output=True, text=True, check=True, timeout=60)
    return tuple(f"{query}: {each}" for each in json.loads(done.stdout))


def _of_query(root: dict[str, Any], operation: dict[str, Any], query: str) -> list[str]:
    known = [_resolved(root, each) for each in operation.get("parameters", [])]
    schemas = {each["name"]: each.get("schema", {}) for each in known if each["in"] == "query"}
    said: list[str] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in schemas:
            said.append(f"the query has {name}")
            continue
        schema = _resolved(root, schemas[name])
        given: Any = int(value) if schema.get("type") == "integer" and value.isdecimal() else value
        said += [f"{name}: {each.message}" for each in _validator(root, schema).iter_errors(given)]
    return said


def _of_body(root: dict[str, Any], operation: dict[str, Any], body: bytes) -> list[str]:
    wanted = operation.get("requestBody")
    if wanted is None:
        return ["it takes no body"] if body else []
    if not body:
        return ["it needs a body"] if wanted.get("required") else []
    schema = wanted["content"]["application/json"]["schema"]
    sent = json.loads(body)
    said = [f"{each.json_path}: {each.message}" for each in _validator(root, schema).iter_errors(sent)]
    known = _resolved(root, schema).get("properties")
    if known is not None and isinstance(sent, dict):
        said += [f"the body has {name}" for name in sent if name not in known]
    return said


def _validator(root: dict[str, Any], schema: dict[str, Any]) -> Draft4Validator:
    return _Validator({**schema, "components": root["components"]})


def _resolved(root: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        found: Any = root
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Every path as a pattern; those with the fewest holes first."""
    paths = sorted(described()["paths"], key=lambda path: path.count("{"))
    return tuple((re.compile(re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(path))), path) for path in paths)


def _operation(root: dict[str, Any], method: str, path: str) -> dict[str, Any] | None:
    for pattern, name in _patterns():
        if pattern.fullmatch(path) and method.lower() in root["paths"][name]:
            return root["paths"][name][method.lower()]
    return None


@cache
def _load(place: Path) -> dict[str, Any]:
    return json.loads(place.read_text("utf-8"))


@cache
def _place() -> Path:
    """The one file of the package that is needed: whole it is 400 MB."""
    folder = CACHE / "mcp" / re.sub(r"[^\w.-]+", "_", PACKAGE)
    place = folder / "api.github.com.json"
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    try:
        argv = [npm(), "pack", "--silent", PACKAGE]
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        # A registry that is slow or unreachable says nothing about Daiku.
        pytest.skip(f"the registry did not answer within {INSTALL_SECONDS} s: {PACKAGE}")
    if done.returncode:
        # A registry that is slow or unreachable says nothing about Daiku.
        pytest.skip(f"cannot be had here: {done.stderr.strip()[-300:]}")
    packed = folder / done.stdout.strip().splitlines()[-1]
    with tarfile.open(packed) as archive:
        member = archive.extractfile(_MEMBER)
        assert member is not None
        place.with_suffix(".part").write_bytes(member.read())
    packed.unlink()
    place.with_suffix(".part").rename(place)
    return place
