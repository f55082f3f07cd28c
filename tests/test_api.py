"""The wire contract: one recorded example of every type, and TypeScript that is up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from daiku import api
from daiku.domain.events import EVENTS
from daiku.fronts.lsp.requests.methods import METHODS
from tests.cases import for_each
from tests.conftest import ROOT

GOLDEN = Path(__file__).parent / "golden" / "wire"

PARAMS_OF_INITIALIZE: dict[str, Any] = {
    "processId": None,
    "rootUri": None,
    "workspaceFolders": [{"uri": "file:///tmp/a%20b", "name": "a b"}],
    "capabilities": {"general": {"positionEncodings": ["utf-8", "utf-16"]}, "workspace": {"applyEdit": True}},
    "initializationOptions": {
        "settings": {"llm": {"model": "x"}},
        "client": {"approvals": True, "locale": "ja"},
    },
}


def wire_types() -> dict[str, type[BaseModel]]:
    """Every type at the ends of the contract, by its name."""
    found: dict[str, type[BaseModel]] = {}
    ends = [(method.params, method.result) for method in METHODS.values()]
    for params, result in (*ends, *api.CLIENT_REQUESTS.values()):
        found[params.__name__] = params
        if result is not None:
            found[result.__name__] = result
    found.update({event.__name__: event for event in EVENTS.values()})
    found.update({t.__name__: t for t in (api.InitializationOptions, api.ServerOffer, api.ChunkRecord)})
    return found


def test_every_wire_type_has_its_recorded_example() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(wire_types())


@for_each("name", sorted(wire_types()))
def test_a_recorded_example_is_read_and_written_unchanged(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    value = wire_types()[name].model_validate_json(text)
    assert json.loads(value.model_dump_json(by_alias=True, exclude_none=True)) == json.loads(text)


@for_each("name", sorted(wire_types()))
def test_a_recorded_example_shows_every_field(name: str) -> None:
    fields = {f.serialization_alias or f.alias or n for n, f in wire_types()[name].model_fields.items()}
    assert set(json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))) == fields


def test_names_on_the_wire_are_camel_case() -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return {k for v in value for k in keys(v)}
        # What stands below these is the tools', the settings' or JSON Schema's own.
        free = ("args", "parameters", "inputSchema", "settings", "input", "opaque")
        if isinstance(value, dict):
            return set(value) | {k for name, v in value.items() if name not in free for k in keys(v)}
        return set()

    for path in GOLDEN.glob("*.json"):
        assert not [key for key in keys(json.loads(path.read_text(encoding="utf-8"))) if "_" in key], (
            path.name
        )


@pytest.mark.slow
def test_the_typescript_contract_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".dev" / "gen.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "contract.gen.ts" not in done.stderr


def test_every_event_and_method_is_in_the_typescript_contract() -> None:
    text = (ROOT / "extension" / "src" / "contract.gen.ts").read_text(encoding="utf-8")
    for name in (*EVENTS, *METHODS, *api.CLIENT_REQUESTS):
        assert f'"{name}"' in text, name
