"""`dataclass` as in the standard library, but `__init__` is compiled when it is first used, and the rest not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, cast

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """The same class as the standard library makes, in a tenth of the time; which options it has, `_made` says."""
        return _made(cls, **options) if cls is not None else lambda each: _made(each, **options)


Fields = Sequence[Field[Any]]


def _made(
    cls: type,
    *,
    frozen: bool = False,
    eq: bool = True,
    init: bool = True,
    slots: bool = False,
    weakref_slot: bool = False,
) -> type:
    own = {name for name, value in cls.__dict__.items() if value is not None}
    # What takes the standard library its time is the text of six methods, written and compiled. Fields, slots and what
    # patterns match on are its work here too. Only where a class is made from another must it know that it is frozen.
    frozen_by_it = frozen and any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
    decorate = cast("Callable[..., Any]", dataclasses.dataclass)  # its overloads expect each option by itself
    options = {"init": False, "repr": False, "eq": False, "frozen": frozen_by_it}
    made = decorate(**options, slots=slots, weakref_slot=weakref_slot)(cls)
    members = fields(made)
    methods: dict[str, Any] = {"__repr__": _repr}
    if init:
        methods["__init__"] = _Init(made, members, frozen=frozen)
    if eq:
        methods |= _comparing([each for each in members if each.compare], frozen=frozen)
    if frozen:
        made.__dataclass_params__.frozen = True  # for a program's own class that is made from it
        methods |= _refusing(made, frozenset(each.name for each in members))
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name in methods.keys() - own:
        setattr(made, name, methods[name])
    return made


class _Init:
    """Stands in for `__init__` of a class until it is asked for."""

    def __init__(self, made: type, members: Fields, *, frozen: bool) -> None:
        self._of = made, members, frozen

    def __get__(self, one: object, _cls: type) -> Any:
        made, members, frozen = self._of
        init: Any = _compiled_init(made, members, frozen=frozen)
        type.__setattr__(made, "__init__", init)
        return init if one is None else init.__get__(one)


class _Default:
    """Shown in a signature where a field's default is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE_ANEW = _Default()


def _compiled_init(made: type, members: Fields, *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_anew": _MADE_ANEW, "_set": object.__setattr__}
    lines = [line for each in members if (line := _assignment(made, each, known, frozen=frozen))]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    first = [_parameter(each) for each in members if each.init and not each.kw_only]
    by_name = [_parameter(each) for each in members if each.init and each.kw_only]
    parameters = ", ".join(["self", *first, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)  # noqa: S102  # as the standard library does; names only
    init = known["__init__"]
    init.__qualname__, init.__module__ = f"{made.__qualname__}.__init__", made.__module__
    init.__annotations__ = {each.name: each.type for each in members if each.init} | {"return": None}
    return init


def _parameter(member: Field[Any]) -> str:
    if member.default is not MISSING:
        return f"{member.name}=_default_{member.name}"
    return member.name if member.default_factory is MISSING else f"{member.name}=_anew"


def _assignment(made: type, member: Field[Any], known: dict[str, Any], *, frozen: bool) -> str:
    """How `__init__` sets a field; what it needs for that is put into `known`. Empty where the class has the value."""
    name, value = member.name, member.name
    if member.default is not MISSING:
        known[f"_default_{name}"] = member.default
        value = name if member.init else f"_default_{name}"
    elif member.default_factory is not MISSING:
        known[f"_new_{name}"] = member.default_factory
        value = f"_new_{name}() if {name} is _anew else {name}" if member.init else f"_new_{name}()"
    elif not member.init:
        return ""
    slot = getattr(made, name, None)
    kept_by_class = member.default is not MISSING and not isinstance(slot, MemberDescriptorType)
    if kept_by_class and not member.init:
        return ""
    if not frozen:
        return f"self.{name} = {value}"
    if isinstance(slot, MemberDescriptorType):
        known[f"_set_{name}"] = slot.__set__
        return f"_set_{name}(self, {value})"
    return f"_set(self, {name!r}, {value})"


@recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({told})"


def _comparing(members: Fields, *, frozen: bool) -> dict[str, Any]:
    values = _values(members)
    hashed = _values([each for each in members if each.hash is not False])

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashing(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hashing if frozen else None}


def _values(members: Fields) -> Callable[[object], object]:
    names = [each.name for each in members]
    return attrgetter(*names) if names else lambda _: ()


def _refusing(made: type, names: frozenset[str]) -> dict[str, Any]:
    def set_field(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def delete_field(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return {"__setattr__": set_field, "__delattr__": delete_field}


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
