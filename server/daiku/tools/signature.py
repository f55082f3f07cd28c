"""A function's docstring and parameters as a tool has them: a pydantic model, and its values as arguments."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from docstring_parser import ParseError, parse
from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from daiku.dataclass import dataclass
from daiku.run.rules.calls.arguments import schema_text
from daiku.tools.tool import Args, ToolContext

_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """The model of a function's arguments, and how they are handed to it."""

    args: type[Args]
    positional: tuple[str, ...]
    """Parameters that can only be given by position, in their order."""
    named: tuple[str, ...]
    context: tuple[str, ...]
    """Parameters that are handed the ToolContext."""
    filled: frozenset[str]
    """Parameters whose default is pydantic's (a `Field`), not the function's own."""

    def values(self, args: Args, context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """The arguments by position and by name. What the model left out stays out: the function has its default."""
        given = args.model_fields_set | self.filled
        found: dict[str, object] = {
            name: getattr(args, name) for name in type(args).model_fields if name in given
        }
        found |= dict.fromkeys(self.context, context)
        positional: list[object] = []
        for name in self.positional:
            if name not in found:
                break
            positional.append(found[name])
        return positional, {name: found[name] for name in self.named if name in found}


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring in the form of Google, NumPy or reST says of the function, and of each parameter by name."""
    try:
        parsed = parse(docstring)
    except ParseError:  # of no form
        return inspect.cleandoc(docstring), {}
    texts: dict[str, str] = {}
    for each in parsed.params:
        text = " ".join((each.description or "").split())
        texts |= dict.fromkeys((name.strip().lstrip("*") for name in each.arg_name.split(",")), text)
    return (parsed.description or "").strip(), texts


def read_signature(
    function: Callable[..., object], called: str, texts: Mapping[str, str], names: dict[str, Any]
) -> Signature:
    """The signature of `function`, the tool `called`; `texts` says what each parameter means, `names` are known
    where it is defined. Raises TypeError or ValueError that names the parameter that a model could not be told of."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"the tool {called!r} yields: return a list, or text")
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise TypeError(
            f"the tool {called!r} has no signature that can be read: wrap it in a `def` with type hints"
        ) from None
    hints = _hints(function, called, names)
    context = tuple(name for name in parameters if hints.get(name) is ToolContext)
    shown = {name: each for name, each in parameters.items() if name not in context}
    fields = {
        name: _field(each, hints.get(name), called, texts.get(name, "")) for name, each in shown.items()
    }
    return Signature(
        args=_model(called, fields),
        positional=tuple(name for name, each in parameters.items() if each.kind is _POSITIONAL),
        named=tuple(name for name, each in parameters.items() if each.kind is not _POSITIONAL),
        context=context,
        filled=frozenset(name for name, each in shown.items() if isinstance(each.default, FieldInfo)),
    )


def _hints(function: Callable[..., object], called: str, names: dict[str, Any]) -> dict[str, Any]:
    own: Any = function
    while isinstance(own, functools.partial):
        own = cast("functools.partial[object]", own).func
    own = own if inspect.isroutine(own) else type(own).__call__
    own = inspect.unwrap(own)
    try:
        return get_type_hints(own, localns=names, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"the tool {called!r} has a type hint with the name {error.name!r}, which is not known where the function "
            "is defined: import it there"
        ) from None


def _field(parameter: inspect.Parameter, hint: Any, called: str, text: str) -> tuple[Any, Any]:
    name = parameter.name
    if parameter.kind in _MANY:
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise TypeError(
            f"the tool {called!r} takes {star}{name}: a model must be told each argument, name them"
        )
    if hint is None:
        raise TypeError(
            f"parameter {name!r} of the tool {called!r} has no type hint: write {name}: str, or what it is"
        )
    if name.startswith("_"):
        raise ValueError(f"parameter {name!r} of the tool {called!r} begins with `_`: name it without")
    if name.startswith("model_") and hasattr(BaseModel, name):
        raise ValueError(
            f"parameter {name!r} of the tool {called!r} has a name that pydantic keeps: name it otherwise"
        )
    if isinstance(parameter.default, FieldInfo):
        return hint, parameter.default
    about = _annotated_text(hint) or text
    told: dict[str, Any] = {"description": about} if about else {}
    if parameter.default is inspect.Parameter.empty:
        return hint, Field(**told)
    return hint, Field(default_factory=_left_out, **told)


def _left_out() -> None:
    """Stands for an argument that the model left out: the function's own default is used."""


def _annotated_text(hint: Any) -> str:
    """The description in `Annotated[int, "how many"]`; of a `Field` pydantic reads its own."""
    if get_origin(hint) is not Annotated:
        return ""
    for each in get_args(hint)[1:]:
        if isinstance(each, FieldInfo) and each.description:
            return each.description
        text = each if isinstance(each, str) else getattr(each, "documentation", None)
        if isinstance(text, str):
            return text
    return ""


def _model(called: str, fields: dict[str, tuple[Any, Any]]) -> type[Args]:
    """The model of these fields; a parameter that cannot come as JSON is named."""
    try:
        return _made(called, fields)
    except (PydanticUserError, TypeError):
        for name, field in fields.items():
            try:
                _made(called, {name: field})
            except (PydanticUserError, TypeError) as error:
                why = str(error).partition("\n")[0].rstrip(".")
                raise TypeError(
                    f"parameter {name!r} of the tool {called!r} cannot come from a model ({why}): take it from "
                    "extra_cfg, by a parameter annotated ToolContext"
                ) from None
        raise


def _made(called: str, fields: dict[str, tuple[Any, Any]]) -> type[Args]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a parameter may be named `schema` or `json`
        made = create_model(f"{called} arguments", __base__=Args, **cast("dict[str, Any]", fields))
    schema_text(made)
    return made
