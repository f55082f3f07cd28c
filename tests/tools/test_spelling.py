"""Every tool is named to a model as the model has to call it, wherever it reads the name, and there is such a tool."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daiku.run.rules.calls.findtools import CORE
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.table import list_delegates
from daiku.tools.mcp.resources import FACES
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
SERVER, PROMPTS = ROOT / "server/daiku", ROOT / "prompts"
EVERY_SPEC = ToolRegistry(build_builtin_tools(editor=True, agents=list_delegates())).specs()
SPECS = tuple(spec for spec in EVERY_SPEC if not spec.inner)
"""Those that a model is told of."""
KNOWN = {*(spec.name for spec in EVERY_SPEC), *CORE, *FACES}
GROUPS = "|".join(sorted({name.partition("/")[0] for name in KNOWN}))
SLASHED = re.compile(rf"(?<![\w/.-])(?:{GROUPS})/(?:\*|[a-z_]+)(?![\w/])")
WIRED = re.compile(rf"(?<![\w/.-])(?:{GROUPS})__[a-z_]+")
CODE = re.compile(r"[\w*]+/[\w*]+|(?:read|network|mcp|command):.*")
"""A name, a pattern of names, or a permission's key: what code compares, and no sentence."""


def strings(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module but its docstrings, each with its line; of a text with holes every part."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.lineno, node.value


def misspelled(text: str) -> list[str]:
    """The names in a text for a model that are spelled as in code, or belong to no tool."""
    wired = {wire_name(name) for name in KNOWN}
    slashed = [] if CODE.fullmatch(text) else SLASHED.findall(text)
    return slashed + [name for name in WIRED.findall(text) if name not in wired]


def test_the_scan_tells_a_sentence_from_a_name() -> None:
    assert misspelled("use files/edit.") == ["files/edit"]
    assert misspelled("use files__edited.") == ["files__edited"]
    for fine in (
        "files/edit",
        "search/*",
        "use files__edit.",
        "server/daiku/tools/files",
        "see src/files/read.py",
    ):
        assert misspelled(fine) == []
    assert [text for _, text in strings('"""doc"""\nx = f"a {y} files/read b"\n')] == ["a ", " files/read b"]


@for_each("path", sorted(SERVER.rglob("*.py")))
def test_sentences_in_code_name_tools_as_they_are_called(path: Path) -> None:
    found = [(line, wrong) for line, text in strings(path.read_text("utf-8")) if (wrong := misspelled(text))]
    assert not found, path


@for_each("language", ["en", "ja"])
def test_sentences_of_the_catalogue_name_tools_as_they_are_called(language: str) -> None:
    catalogue: dict[str, Any] = json.loads((SERVER / f"texts/{language}.json").read_text("utf-8"))
    assert not {key: wrong for key, value in catalogue.items() if (wrong := misspelled(str(value)))}


_OFFERED = re.compile(r'"[a-z_/]+" in offered')
"""A condition of a template, which no model reads."""


def test_prompts_name_tools_as_they_are_called() -> None:
    shown = {path: _OFFERED.sub("", path.read_text("utf-8")) for path in sorted(PROMPTS.rglob("*.j2"))}
    templates = {path: misspelled(text) for path, text in shown.items()}
    assert not {path.name: wrong for path, wrong in templates.items() if wrong}


def parameters(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every parameter of a schema by its place, those of objects in lists included."""
    for name, node in schema.get("properties", {}).items():
        yield f"{where}.{name}", node
        yield from parameters(node, f"{where}.{name}")
        yield from parameters(node.get("items", {}), f"{where}.{name}")


EVERY = [found for spec in SPECS for found in parameters(spec.parameters, spec.name)]


@for_each(("where", "node"), EVERY)
def test_every_parameter_is_described_in_at_most_ten_words(where: str, node: dict[str, Any]) -> None:
    assert 0 < len(str(node.get("description", "")).split()) <= 10, where


@for_each(("where", "node"), EVERY)
def test_a_number_has_its_unit(where: str, node: dict[str, Any]) -> None:
    if node.get("type") in ("number", "integer"):
        units = (
            "seconds",
            "line",
            "levels",
            "tokens",
            "from 1",
            "character",
            "how many",
            "results",
            "tokens to show",
        )
        assert any(unit in node["description"] for unit in units), where


def test_schemas_are_sent_without_noise() -> None:
    noise = ('"additionalProperties": false', '"anyOf"', '"title": "', '"$ref"', '"$defs"', '"default":')
    for spec in SPECS:
        shown = json.dumps(spec.parameters)
        assert [word for word in noise if word in shown] == [], spec.name


def test_a_description_does_not_repeat_its_parameters() -> None:
    for spec in SPECS:
        told = [node["description"] for where, node in EVERY if where.startswith(f"{spec.name}.")]
        assert not [words for words in told if len(words) > 20 and words in spec.description], spec.name
