"""Nothing in the server is there for nobody: what no code of the product uses is named. Tests do not count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from pydantic.alias_generators import to_snake

import daiku
from tests.cases import for_each
from tests.conftest import ROOT
from tests.dead import dead, unreached
from tests.reached import Sources
from tests.test_architecture import modules

GENERATORS = ("contract", "gen", "manifest", "tables", "words")
"""Programs of `.dev` that make parts of the product from the server's tables."""
FOR_PEOPLES_OWN_CODE = (
    "daiku.library.inference",
    "daiku.library.mcp",
    "daiku.models.adapter",
    "daiku.testing",
    *set(daiku._PLACES.values()),
)
KEPT: dict[str, tuple[str, ...]] = {
    "people's own code calls and reads it": ("daiku.library.runner:Runner.*",),
    "its place is named: arguments of a call shown while they arrive, as recorded cases hold it": (
        "daiku.models.rules.replies.parse:parse_partial_json",
    ),
    "its place is named: work items come from them": ("daiku.plugins.entries:Plugged.work_sources",),
    "fields are read by the name of the provider": ("daiku.models.table:LLMSettings.*",),
    "fields are read by the name of the agent": ("daiku.settings.config:AgentsSettings.*",),
    "a value is compared or written as a whole": (
        "daiku.guard.sandbox.tree:Mark.inode",
        "daiku.trace.rules.lines:TraceLine.*",
    ),
    "the MCP SDK calls it: a form of its own, not a base": ("daiku.tools.mcp.transport.oauth:TokenFile.*",),
}
"""What is there although nothing uses it, by the reason."""


def words(paths: Iterable[Path]) -> frozenset[str]:
    """Every name in these files, in snake case."""
    text = "\n".join(path.read_text("utf-8") for path in paths)
    return frozenset(map(to_snake, set(re.findall(r"[A-Za-z_]\w*", text))))


@cache
def found() -> frozenset[str]:
    """What nothing uses but what is kept; what only that uses is not named."""
    trees = {name: module.tree for name, module in modules().items()}
    generators = {name: ast.parse((ROOT / ".dev" / f"{name}.py").read_text("utf-8")) for name in GENERATORS}
    sources = Sources(trees | generators)
    sources.reach("daiku.__main__", "main")
    for name in (*FOR_PEOPLES_OWN_CODE, *GENERATORS):
        sources.reach_all(name)
    sources.walk()
    kept = [place for place in unreached(sources) if is_kept(place)]
    for place in kept:
        sources.reach(*place.split(":"))
    sources.walk()
    written = [p for room in ("src", "webview") for p in (ROOT / "extension" / room).rglob("*.ts*")]
    panel = words(path for path in written if ".gen." not in path.name)
    prompts = words((ROOT / "prompts").rglob("*.j2"))
    # what the server answers with is for any client
    answers = [sources.given[name].names for module, name in sources.tops if module.startswith("daiku.api")]
    elsewhere = {"daiku.api": panel.union(*answers), "daiku.domain": panel, "daiku.team": prompts}
    return frozenset(kept) | {each for each in dead(sources, elsewhere) if each.startswith("daiku.")}


def is_kept(place: str) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in patterns())


@cache
def patterns() -> tuple[str, ...]:
    return tuple(place for places in KEPT.values() for place in places)


def test_nothing_is_there_that_nothing_uses() -> None:
    unused = sorted(place for place in found() if not is_kept(place))
    assert not unused, "delete these, with their tests (or write down why they stay):\n" + "\n".join(unused)


def test_what_is_kept_for_a_reason_is_still_unused() -> None:
    kept = [place for places in KEPT.values() for place in places]
    used = [pattern for pattern in kept if not any(fnmatchcase(place, pattern) for place in found())]
    assert not used, f"something uses these now, take them off the list: {used}"


LIBRARY = """
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from elsewhere import Base, register

FIRST, SECOND = 1, 2
UNUSED = 3
class Shape(Protocol):
    def area(self, unit: str) -> int: ...
@dataclass
class Square:
    side: int
    colour: str = ""
    def area(self, unit: str) -> int:
        return self.side * helper(self.side)
    def idle(self) -> int:
        return self.idle() + only_for_idle()
class Circle:
    def area(self, unit: str) -> int:
        return 3
class Pair(NamedTuple):
    left: int
    right: int
class Handler(Base):
    def called_by_base(self, what: str) -> int:
        return FIRST
def helper(size: int, turn: bool = False, *, twice: bool = False) -> int:
    return size if turn else 0
def only_for_idle() -> int:
    return 0
def even(n: int) -> bool:
    return odd(n)
def odd(n: int) -> bool:
    return even(n)
def given(n: int, left_out: int) -> int:
    return n
@register
def handed_on() -> None:
    by_name()
def by_name() -> object:
    return getattr(Square(1), "colour")
"""
PROGRAM = """
from daiku import library
from daiku.library import Circle as Round, Handler, Pair, Shape, given
def main(shape: Shape) -> None:
    match shape:
        case library.Square():
            shape.area("m")
        case Round():
            Handler()
    left, right = Pair(1, 2)
    helper = given(left, right)
    print(helper, library.helper(1, True))
"""


def told(program: str = PROGRAM) -> list[str]:
    sources = Sources({"daiku.library": ast.parse(LIBRARY), "daiku.program": ast.parse(program)})
    sources.reach("daiku.program", "main")
    sources.walk()
    return [place.removeprefix("daiku.library:") for place in dead(sources)]


def test_each_kind_of_what_is_unused_is_found_and_nothing_else() -> None:
    assert told() == [
        "Square.idle",
        "UNUSED",
        "even",
        "given(left_out)",
        "helper(twice)",
        "helper(twice=)",
        "odd",
        "only_for_idle",
    ]


@for_each(
    ("line", "revived"),
    [
        ("shape.idle()", {"Square.idle", "only_for_idle"}),
        ("library.even(1)", {"even", "odd"}),
        ("library.helper(1, twice=True)", {"helper(twice=)"}),
        ("library.helper(1, **shape)", {"helper(twice=)"}),
        ("print(library.helper)", {"helper(twice)", "helper(twice=)"}),
        ("print(library.UNUSED)", {"UNUSED"}),
        ("UNUSED = 1; print(UNUSED)", set[str]()),
        ("shape.idle = 1", set[str]()),
    ],
)
def test_what_comes_into_use_is_named_no_more(line: str, revived: set[str]) -> None:
    assert set(told()) - set(told(f"{PROGRAM}    {line}\n")) == revived
