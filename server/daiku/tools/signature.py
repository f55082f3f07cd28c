"""Convert a function's docstring and parameters to a pydantic model, and its values to arguments."""

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
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """The model of a function's arguments, and how they are passed to it."""

    args: type[Args]
    positional: tuple[str, ...]
    """Positional-only parameters, in order."""
    named: tuple[str, ...]
    context: tuple[str, ...]
    """Parameters that receive the ToolContext."""
    filled: frozenset[str]
    """Parameters whose default is pydantic's (a `Field`), not the function's own."""

    def build_arguments(self, args: Args, context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Return the positional and keyword arguments. Missing ones are left to the function's defaults."""
        passed_names = args.model_fields_set | self.filled
        values: dict[str, object] = {
            name: getattr(args, name) for name in type(args).model_fields if name in passed_names
        }
        values |= dict.fromkeys(self.context, context)
        positional: list[object] = []
        for name in self.positional:
            if name not in values:
                break
            positional.append(values[name])
        return positional, {name: values[name] for name in self.named if name in values}


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Parse a docstring (Google, NumPy, or reST): the description, and the text of each parameter by name."""
    try:
        parsed = parse(docstring)
    except ParseError:  # not in a known format
        return inspect.cleandoc(docstring), {}
    texts: dict[str, str] = {}
    for parameter in parsed.params:
        text = " ".join((parameter.description or "").split())
        texts |= dict.fromkeys((name.strip().lstrip("*") for name in parameter.arg_name.split(",")), text)
    return (parsed.description or "").strip(), texts


def read_signature(
    function: Callable[..., object], called: str, texts: Mapping[str, str], names: dict[str, Any]
) -> Signature:
    """Build the signature of `function` for the tool `called`.

    `texts`: descriptions of the parameters. `names`: names known where the function is defined. Raises
    TypeError or ValueError that names the parameter that cannot be described to a model.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"the tool {called!r} yields: return a list, or text")
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise TypeError(
            f"the tool {called!r} has no signature that can be read: wrap it in a `def` with type hints"
        ) from None
    hints = _read_hints(function, called, names)
    context = tuple(name for name in parameters if hints.get(name) is ToolContext)
    model_parameters = {name: parameter for name, parameter in parameters.items() if name not in context}
    fields = {
        name: _build_field(parameter, hints.get(name), called, texts.get(name, ""))
        for name, parameter in model_parameters.items()
    }
    return Signature(
        args=_build_model(called, fields),
        positional=tuple(name for name, parameter in parameters.items() if parameter.kind is _POSITIONAL),
        named=tuple(name for name, parameter in parameters.items() if parameter.kind is not _POSITIONAL),
        context=context,
        filled=frozenset(
            name for name, parameter in model_parameters.items() if isinstance(parameter.default, FieldInfo)
        ),
    )


def _read_hints(function: Callable[..., object], called: str, names: dict[str, Any]) -> dict[str, Any]:
    target: Any = function
    while isinstance(target, functools.partial):
        target = cast("functools.partial[object]", target).func
    target = target if inspect.isroutine(target) else type(target).__call__
    target = inspect.unwrap(target)
    try:
        return get_type_hints(target, localns=names, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"the tool {called!r} has a type hint with the name {error.name!r}, which is not known where the function "
            "is defined: import it there"
        ) from None


def _build_field(parameter: inspect.Parameter, hint: Any, called: str, text: str) -> tuple[Any, Any]:
    name = parameter.name
    if parameter.kind in _VARIADIC:
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
    description = _read_annotation(hint) or text
    field_options: dict[str, Any] = {"description": description} if description else {}
    if parameter.default is inspect.Parameter.empty:
        return hint, Field(**field_options)
    return hint, Field(default_factory=_return_omitted, **field_options)


def _return_omitted() -> None:
    """Mark an argument that the model omitted: the function's own default applies."""


def _read_annotation(hint: Any) -> str:
    """Return the description in `Annotated[int, "how many"]`. Pydantic reads that of a `Field` itself."""
    if get_origin(hint) is not Annotated:
        return ""
    for metadata in get_args(hint)[1:]:
        if isinstance(metadata, FieldInfo) and metadata.description:
            return metadata.description
        text = metadata if isinstance(metadata, str) else getattr(metadata, "documentation", None)
        if isinstance(text, str):
            return text
    return ""


def _build_model(called: str, fields: dict[str, tuple[Any, Any]]) -> type[Args]:
    """Build the model of these fields. An error names the parameter that cannot come from JSON."""
    try:
        return _create_model(called, fields)
    except (PydanticUserError, TypeError):
        for name, field in fields.items():
            try:
                _create_model(called, {name: field})
            except (PydanticUserError, TypeError) as error:
                reason = str(error).partition("\n")[0].rstrip(".")
                raise TypeError(
                    f"parameter {name!r} of the tool {called!r} cannot come from a model ({reason}): take it from "
                    "extra_cfg, by a parameter annotated ToolContext"
                ) from None
        raise


def _create_model(called: str, fields: dict[str, tuple[Any, Any]]) -> type[Args]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a parameter may be named `schema` or `json`
        model = create_model(f"{called} arguments", __base__=Args, **cast("dict[str, Any]", fields))
    schema_text(model)
    return model
