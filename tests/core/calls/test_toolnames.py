"""A tool's name goes to a model and comes back the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.tools import ToolSpec
from daiku.run.rules.calls.toolnames import NameMap, canonical_name
from tests.cases import for_each

names = st.from_regex(r"\A[^/\ud800-\udfff]{1,40}/[^\ud800-\udfff]{1,60}\Z")


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters={}, effect="none")


@given(st.lists(names, unique=True))
def test_every_name_fits_the_wire_and_leads_back(given_names: list[str]) -> None:
    known = NameMap(spec(name) for name in given_names)
    wires = [known.to_wire(name) for name in given_names]
    assert [known.to_name(wire) for wire in wires] == given_names
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire) for wire in wires)


@for_each(
    ("spelling", "name"),
    [
        ("files/read", "files/read"),
        ("files__read", "files/read"),
        ("files.read", "files/read"),
        (" files/read ", "files/read"),
        ("plan_tool.propose", "plan/propose"),
        ("task_tool.generate_list", "task/generate_list"),
        ("task_loop.run", "task_loop/run"),
        ("file_ops.write_file", "files/write"),
        ("file_ops.write", "files/write"),
        ("server/tool.v2", "server/tool.v2"),
        ("invented", "invented"),
    ],
)
def test_every_spelling_is_understood(spelling: str, name: str) -> None:
    assert canonical_name(spelling) == name
