"""Calls as JSON values or as Python, in the forms that models were taught."""

from __future__ import annotations

import ast
import json
import re
from types import NoneType
from typing import NamedTuple, cast

from pydantic import JsonValue, ValidationError

from daiku.domain.base import JsonObject
from daiku.models.rules.replies.actions import ActionsReply
from daiku.models.rules.replies.parse import (
    DECODER,
    describe_error,
    describe_json_error,
    repair_whole_json,
    replace_lone_surrogates,
)
from daiku.models.rules.textcalls.parsed_calls import UnreadableCall, WrittenCall, whole_object
from daiku.texts.text import text

_NAMES = ("operation", "tool", "name", "tool_name", "action", "function", "recipient_name")
_ARGS = ("args", "arguments", "parameters", "input", "action_input", "tool_input", "params")
_BESIDE = {
    *("id", "type", "index", "call_id", "tool_call_id", "action_id"),
    *("reasoning", "comment", "thought", "thoughts", "explanation"),
}
_LISTS = ("actions", "action_list", "ActionList")
_OWN = {*_LISTS, "command", "done", "comment"}
_SPOKEN = ("comment", "reply", "message", "response")


class JsonReply(NamedTuple):
    """The calls and the comment of a JSON value; `own`: in a protocol's form, so that unknown names count as tools."""

    calls: tuple[WrittenCall, ...]
    comment: str = ""
    own: bool = False


def read_value(value: JsonValue, *, own: bool, marked: bool = False) -> JsonReply | UnreadableCall | None:
    """Return the calls in a JSON value; None if it is only data. `own`: the model knows the text protocols. `marked`:
    the value is between marks of calls, so a name alone is a call."""
    if isinstance(value, list):
        return _listed(value, own=own, marked=marked)
    if not isinstance(value, dict):
        return None
    if own and (found := _in_own_form(value)) is not None:
        return found
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        listed = _listed(calls, own=False, marked=True)
        return listed._replace(comment=_comment(value)) if isinstance(listed, JsonReply) else listed
    call = _call(value, marked=marked)
    return JsonReply((call,)) if isinstance(call, WrittenCall) else call


def _listed(values: list[JsonValue], *, own: bool, marked: bool = False) -> JsonReply | UnreadableCall | None:
    if not values:
        return JsonReply((), own=True) if own else None
    found = [
        read_value(value, own=own, marked=marked) if isinstance(value, dict) else None for value in values
    ]
    said = [each for each in found if isinstance(each, JsonReply)]
    if not said:
        return next((each for each in found if isinstance(each, UnreadableCall)), None)
    if len(said) < len(found):
        return UnreadableCall(text("calls.some_items"))
    return JsonReply(
        tuple(call for each in said for call in each.calls),
        "\n".join(each.comment for each in said if each.comment),
        any(each.own for each in said),
    )


def _in_own_form(value: JsonObject) -> JsonReply | UnreadableCall | None:
    """Return what an action list, one action or a command says; None for other JSON."""
    is_list = any(isinstance(value.get(name, ""), list | NoneType) for name in _LISTS)
    is_command = (
        isinstance(value.get("command"), dict) or "done" in value or bool(set(value) <= _OWN and value)
    )
    if is_list or (not is_command and isinstance(value.get("operation"), str)):
        return _read_actions(value)
    return _read_command(value) if is_command else None


def _read_actions(value: JsonObject) -> JsonReply | UnreadableCall:
    """Read an action list under one of its names, or one action."""
    name = next((name for name in _LISTS if name in value), "")
    try:
        read = ActionsReply.model_validate({"actions": (value[name] or []) if name else [value]})
    except ValidationError as wrong:
        return UnreadableCall(describe_error(wrong))
    calls = tuple(WrittenCall(a.operation.strip(), a.args, a.id, a.reasoning) for a in read.actions)
    return JsonReply(calls, _comment(value) if name else "", own=True)


def _read_command(value: JsonObject) -> JsonReply | UnreadableCall:
    """Read one command or the end (R2.47–R2.51); the outer comment wins over the command's own (C2.2)."""
    command = value.get("command")
    if isinstance(command, dict):
        tool, args = command.get("tool"), command.get("args")
        if not isinstance(tool, str) or not tool.strip():
            return UnreadableCall(text("forms.command_tool"))
        if not isinstance(args, dict | NoneType):
            return UnreadableCall(text("calls.bad_arguments", name=tool.strip()))
        call = WrittenCall(tool.strip(), args or {})
        return JsonReply((call,), _comment(value) or _comment(command), own=True)
    if value.get("done") is True:
        return JsonReply((), _comment(value), own=True)
    if "done" in value and "command" not in value:
        return UnreadableCall(text("forms.done"))
    return UnreadableCall(text("forms.command_or_done"))


def _comment(value: JsonObject) -> str:
    return next((said for key in _SPOKEN if isinstance(said := value.get(key), str) and said), "")


def _call(value: JsonObject, *, marked: bool = False) -> WrittenCall | UnreadableCall | None:
    """`{"name": …, "arguments": …}` in one of its many spellings; a tool's definition is none."""
    inner = value.get("function")
    if isinstance(inner, dict) and set(value) <= {"function", *_BESIDE}:
        call = _call(inner, marked=marked)
        outer = value.get("id")
        return call._replace(id=outer) if isinstance(call, WrittenCall) and isinstance(outer, str) else call
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), "")
    args = next((key for key in _ARGS if key in value), "")
    if not name or not (args or marked) or not set(value) <= {name, args, *_BESIDE}:
        return None
    given = value.get(args)
    if (
        isinstance(given, dict)
        and given.get("type") == "object"
        and isinstance(given.get("properties"), dict)
    ):
        return None  # a schema: it says what the tool takes
    tool = str(value[name]).strip()
    found = whole_object(given)
    if found is None:
        return UnreadableCall(text("calls.bad_arguments", name=tool))
    own = value.get("id", value.get("action_id"))
    reasoning = value.get("reasoning")
    return WrittenCall(
        tool,
        found,
        str(own) if isinstance(own, str | int) else "",
        reasoning if isinstance(reasoning, str) else None,
    )


# -- values in a text -----------------------------------------------------------------------------

_BETWEEN = re.compile(r"[\s;,]*")
_LOOKS = re.compile(r"\{\s*(?:[{\"'\w]|$)|\[\s*(?:[{\]]|$)")


class Values(NamedTuple):
    """JSON values that stand one after the other in a text, and where the last of them ends."""

    values: tuple[JsonValue, ...]
    end: int


def values_from(reply: str, at: int = 0) -> Values | UnreadableCall:
    """The JSON values from `at` on, with nothing but blanks, `;` and `,` between them."""
    found: list[JsonValue] = []
    end = at
    while match := _LOOKS.match(reply, at := _BETWEEN.match(reply, at).end()):  # pyright: ignore[reportOptionalMemberAccess]  # matches nothing too
        try:
            value, at = DECODER.raw_decode(reply, match.start())
        except (ValueError, RecursionError) as wrong:
            doubled = _doubled(reply, match.start())
            if doubled is None:
                return UnreadableCall(describe_json_error(wrong))
            value, at = doubled
        found.append(replace_lone_surrogates(value))
        end = at
    return Values(tuple(found), end)


def whole_values(text: str) -> Values | UnreadableCall | None:
    """Parse all of `text` as JSON values; None if it is not JSON, UnreadableCall if it is broken."""
    text = text.strip()
    if not _LOOKS.match(text):
        return None
    found = values_from(text)
    if isinstance(found, Values):
        rest = _BETWEEN.sub("", text[found.end :], count=1)
        return found if not rest else None
    value = repair_whole_json(text)
    return found if value is None else Values((value,), len(text))


def _doubled(text: str, at: int) -> tuple[JsonValue, int] | None:
    """A value between doubled braces, as a template would show it."""
    if not text.startswith("{{", at):
        return None
    try:
        value, end = DECODER.raw_decode(text, at + 1)
    except (ValueError, RecursionError):
        return None
    closing = re.compile(r"\s*\}").match(text, end)
    return (cast("JsonValue", value), closing.end()) if closing else None


# -- Python ---------------------------------------------------------------------------------------

_PYTHON = re.compile(r"\s*\[?\s*(?:print\()?\s*[A-Za-z_][\w.]*\(")
_LITERALS = {"true": True, "false": False, "null": None}


def may_be_python_calls(text: str, at: int) -> bool:
    """True where `python_calls` may find something in what stands at `at`."""
    return _PYTHON.match(text, at) is not None


def python_calls(text: str) -> tuple[WrittenCall, ...] | None:
    """`[a_tool(x="1"), …]` or one such call a line, in `print` or not; None for any other text."""
    if not _PYTHON.match(text):
        return None
    try:
        lines = ast.parse(text.strip(), mode="exec").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[WrittenCall] = []
    for line in lines:
        if not isinstance(line, ast.Expr):
            return None
        for node in line.value.elts if isinstance(line.value, ast.List) else [line.value]:
            call = _python_call(node)
            if call is None:
                return None
            found.append(call)
    return tuple(found) or None


def _python_call(node: ast.expr) -> WrittenCall | None:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return _python_call(inner)
        case ast.Call(args=[], keywords=keywords):
            try:
                args = {word.arg: _literal(word.value) for word in keywords if word.arg is not None}
            except (ValueError, TypeError, RecursionError):
                return None
            return WrittenCall(ast.unparse(node.func), args) if len(args) == len(keywords) else None
        case _:
            return None


class _JsonNames(ast.NodeTransformer):
    """Replaces JSON's names of constants by their values."""

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that `ast` calls
        return ast.Constant(_LITERALS[node.id]) if node.id in _LITERALS else node


def _literal(node: ast.expr) -> JsonValue:
    """Return the JSON value of a literal. Raises ValueError or TypeError for anything else."""
    return cast("JsonValue", json.loads(json.dumps(ast.literal_eval(_JsonNames().visit(node)))))
