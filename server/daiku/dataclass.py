"""`dataclass` like the standard library's, with `__init__` compiled on first use and no other generated code."""

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
        """Return the same class as the standard library, in a tenth of the time; `_decorate` has the options."""
        return _decorate(cls, **options) if cls is not None else lambda each: _decorate(each, **options)


Fields = Sequence[Field[Any]]


def _decorate(
    cls: type,
    *,
    frozen: bool = False,
    eq: bool = True,
    init: bool = True,
    slots: bool = False,
    weakref_slot: bool = False,
) -> type:
    own = {name for name, value in cls.__dict__.items() if value is not None}
    # The standard library spends its time on writing and compiling six methods. It still makes fields, slots,
    # and `__match_args__`. It has to know of `frozen` only for a subclass of a dataclass.
    is_frozen_subclass = frozen and any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
    # The overloads of the standard decorator do not accept a dict of options.
    decorate = cast("Callable[..., Any]", dataclasses.dataclass)
    options = {"init": False, "repr": False, "eq": False, "frozen": is_frozen_subclass}
    result = decorate(**options, slots=slots, weakref_slot=weakref_slot)(cls)
    members = fields(result)
    methods: dict[str, Any] = {"__repr__": _repr}
    if init:
        methods["__init__"] = _Init(result, members, frozen=frozen)
    if eq:
        methods |= _comparison_methods([each for each in members if each.compare], frozen=frozen)
    if frozen:
        result.__dataclass_params__.frozen = True  # for subclasses that use the standard decorator
        methods |= _frozen_methods(result, frozenset(each.name for each in members))
    if frozen and slots:
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name in methods.keys() - own:
        setattr(result, name, methods[name])
    return result


class _Init:
    """Placeholder for `__init__` that compiles the real one on first access."""

    def __init__(self, cls: type, members: Fields, *, frozen: bool) -> None:
        self._of = cls, members, frozen

    def __get__(self, instance: object, _cls: type) -> Any:
        cls, members, frozen = self._of
        init: Any = _compile_init(cls, members, frozen=frozen)
        type.__setattr__(cls, "__init__", init)
        return init if instance is None else init.__get__(instance)


class _FactoryDefault:
    """Shown in signatures for a field with a default factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY_DEFAULT = _FactoryDefault()


def _compile_init(cls: type, members: Fields, *, frozen: bool) -> Callable[..., None]:
    namespace: dict[str, Any] = {"_anew": _FACTORY_DEFAULT, "_set": object.__setattr__}
    lines = [line for each in members if (line := _assign_field(cls, each, namespace, frozen=frozen))]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    positional = [_format_parameter(each) for each in members if each.init and not each.kw_only]
    keyword_only = [_format_parameter(each) for each in members if each.init and each.kw_only]
    parameters = ", ".join(["self", *positional, *(["*", *keyword_only] if keyword_only else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), namespace)  # noqa: S102  # as the standard library does; names only
    init = namespace["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {each.name: each.type for each in members if each.init} | {"return": None}
    return init


def _format_parameter(member: Field[Any]) -> str:
    if member.default is not MISSING:
        return f"{member.name}=_default_{member.name}"
    return member.name if member.default_factory is MISSING else f"{member.name}=_anew"


def _assign_field(cls: type, member: Field[Any], namespace: dict[str, Any], *, frozen: bool) -> str:
    """Return the line of `__init__` that sets a field, and add its names to `namespace`.

    Empty if the class attribute already holds the value.
    """
    name, value = member.name, member.name
    if member.default is not MISSING:
        namespace[f"_default_{name}"] = member.default
        value = name if member.init else f"_default_{name}"
    elif member.default_factory is not MISSING:
        namespace[f"_new_{name}"] = member.default_factory
        value = f"_new_{name}() if {name} is _anew else {name}" if member.init else f"_new_{name}()"
    elif not member.init:
        return ""
    slot = getattr(cls, name, None)
    has_class_default = member.default is not MISSING and not isinstance(slot, MemberDescriptorType)
    if has_class_default and not member.init:
        return ""
    if not frozen:
        return f"self.{name} = {value}"
    if isinstance(slot, MemberDescriptorType):
        namespace[f"_set_{name}"] = slot.__set__
        return f"_set_{name}(self, {value})"
    return f"_set(self, {name!r}, {value})"


@recursive_repr()
def _repr(self: Any) -> str:
    arguments = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({arguments})"


def _comparison_methods(members: Fields, *, frozen: bool) -> dict[str, Any]:
    values = _values_getter(members)
    hashed = _values_getter([each for each in members if each.hash is not False])

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashing(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hashing if frozen else None}


def _values_getter(members: Fields) -> Callable[[object], object]:
    names = [each.name for each in members]
    return attrgetter(*names) if names else lambda _: ()


def _frozen_methods(cls: type, names: frozenset[str]) -> dict[str, Any]:
    def set_field(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_field(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_field, "__delattr__": delete_field}


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
