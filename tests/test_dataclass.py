"""Our `dataclass` makes the same classes as the standard library's, without compiling text at import."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from daiku.dataclass import dataclass
from tests.cases import for_each

Decorator = Callable[..., Any]
OPTIONS: tuple[dict[str, bool], ...] = (
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
)
DECORATORS: tuple[Decorator, ...] = (dataclasses.dataclass, dataclass)


def point(decorate: Decorator, options: dict[str, bool]) -> Any:
    @decorate(**options)
    class Point:
        """A place."""

        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: list[str] = dataclasses.field(default_factory=list, hash=False)
        note: str = dataclasses.field(default="", compare=False, repr=False)
        fixed: int = dataclasses.field(default=7, init=False)
        fresh: list[int] = dataclasses.field(default_factory=list, init=False, compare=False)
        given: bool = dataclasses.field(default=False, kw_only=True)

        def sum(self) -> int:
            return self.x + self.y

    return Point


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (AttributeError, TypeError) as error:
        return type(error), str(error)


@for_each("options", OPTIONS)
def test_a_class_behaves_as_the_standard_librarys(options: dict[str, bool]) -> None:
    def all_of_it(decorate: Decorator) -> list[Any]:
        made = point(decorate, options)
        one, same, other = made(1), made(1, note="unlike"), made(1, 3, ["a"], given=True)
        fields = ["x", "y", "tags", "note", "fixed", "fresh", "given"]
        return [
            [[getattr(each, name) for name in fields] for each in (one, same, other)],
            [repr(each) for each in (one, other)],
            [one == same, one == other, one != same, one == 1],
            one.sum(),
            outcome(lambda: hash(one) == hash(same)) if "eq" not in options else None,
            outcome(lambda: hash(other) == hash(made(1, 3, ["b"], given=True))) if options.get("frozen") else None,
            outcome(lambda: setattr(one, "x", 5)),
            outcome(lambda: delattr(one, "y")),
            outcome(made),
            outcome(lambda: made(1, fixed=3)),
            [each.name for each in dataclasses.fields(made)],
            repr(dataclasses.replace(other, x=9) if not dataclasses.fields(made)[4].init else other),
            dataclasses.asdict(other),
            made.__match_args__,
            made.__doc__,
            hasattr(made, "__slots__"),
            str(inspect.signature(made)),
            made.__init__.__qualname__,
            made.__init__.__annotations__,
            repr(copy.copy(other)),
            repr(copy.deepcopy(other)),
        ]  # fmt: skip

    expected, found = (all_of_it(decorate) for decorate in DECORATORS)
    assert found == expected


def test_each_object_has_a_default_of_its_own() -> None:
    made = point(dataclass, {"frozen": True, "slots": True})
    assert made(1).tags is not made(1).tags


def test_a_method_that_the_class_has_stays() -> None:
    def told(decorate: Decorator) -> list[Any]:
        @decorate(frozen=True, slots=True)
        class Own:  # noqa: PLW1641  # the decorator adds it
            x: int

            def __repr__(self) -> str:
                return "own"

            def __eq__(self, other: object) -> bool:
                return True

        @decorate(slots=True)
        class Made:
            x: int = 1
            twice: int = dataclasses.field(default=0, init=False)

            def __post_init__(self) -> None:
                self.twice = self.x * 2

        @decorate(frozen=True, slots=True, init=False)
        class Bare:
            x: int

            def __init__(self) -> None:
                object.__setattr__(self, "x", 3)

        return [repr(Own(1)), Own(1) == Own(2), hash(Own(1)) == hash(Own(1)), Made(4).twice, Bare().x]

    assert told(dataclass) == told(dataclasses.dataclass)


@for_each("inner", DECORATORS)
def test_a_program_makes_its_own_class_from_one_of_ours(inner: Decorator) -> None:
    ours = point(dataclass, {"frozen": True, "slots": True})

    @inner(frozen=True)
    class Place(ours):
        name: str = ""

    place: Any = Place(1, name="here")
    assert (place.x, place.name, place.sum()) == (1, "here", 3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        place.x = 2
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        inner()(type("Loose", (ours,), {}))


def test_a_plain_class_below_one_of_ours_may_have_more_of_its_own() -> None:
    ours = point(dataclass, {"frozen": True})

    class Named(ours):
        pass

    named: Any = Named(1)
    named.name = "here"
    assert named.name == "here"
    assert type(named).__init__ is ours.__init__
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.x = 2


@dataclass(frozen=True, slots=True)
class Pickled:
    x: int
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Circle:
    inner: list[object]


def test_objects_are_pickled_and_matched() -> None:
    match pickle.loads(pickle.dumps(Pickled(1, ("a",)))):
        case Pickled(1, more=("a",)):
            pass
        case other:
            pytest.fail(f"{other!r}")


def test_an_object_that_holds_itself_is_shown() -> None:
    circle = Circle([])
    circle.inner.append(circle)
    assert repr(circle) == "Circle(inner=[...])"


def test_nothing_is_compiled_before_the_first_object(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()
    monkeypatch.setattr(dataclasses, "exec", lambda text, *_: compiled.append(text), raising=False)
    monkeypatch.setattr("daiku.dataclass.exec", lambda *_: compiled.append("ours"), raising=False)
    point(dataclass, {"frozen": True, "slots": True})
    assert compiled == []
