"""Parser for tool calls written as JSON values or Python expressions."""

from __future__ import annotations

import ast
import json
import re
from types import NoneType
from typing import NamedTuple, cast

from pydantic import JsonValue, ValidationError

from daiku.domain.base import JsonObject
from daiku.models.rules.replies.parse import (
    DECODER,
    describe_error,
    describe_json_error,
    repair_whole_json,
    replace_lone_surrogates,
)
from daiku.models.rules.replies.roleforms import ActionsReply
from daiku.models.rules.textcalls.parsed_calls import UnreadableCall, WrittenCall, parse_object
from daiku.texts.text import text

_NAMES = ("operation", "tool", "name", "tool_name", "action", "function", "recipient_name")
_ARGS = ("args", "arguments", "parameters", "input", "action_input", "tool_input", "params")
_EXTRA_KEYS = {
    *("id", "type", "index", "call_id", "tool_call_id", "action_id"),
    *("reasoning", "comment", "thought", "thoughts", "explanation"),
}
_LISTS = ("actions", "action_list", "ActionList")
_PROTOCOL_KEYS = {*_LISTS, "command", "done", "comment"}
_COMMENT_KEYS = ("comment", "reply", "message", "response")


class JsonReply(NamedTuple):
    """Calls and comment of a JSON value.

    With `text_protocol`, it has a protocol's form, so unknown names count as tools.
    """

    calls: tuple[WrittenCall, ...]
    comment: str = ""
    text_protocol: bool = False


def read_value(
    value: JsonValue, *, text_protocol: bool, marked: bool = False
) -> JsonReply | UnreadableCall | None:
    """Return the calls in a JSON value; None if it is only data.

    `text_protocol`: the model knows the text protocols. `marked`: the value is between marks of calls, so a name
    alone is a call.
    """
    if isinstance(value, list):
        return _read_list(value, text_protocol=text_protocol, marked=marked)
    if not isinstance(value, dict):
        return None
    if text_protocol and (own_form := _read_own_form(value)) is not None:
        return own_form
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        listed = _read_list(calls, text_protocol=False, marked=True)
        return listed._replace(comment=_find_comment(value)) if isinstance(listed, JsonReply) else listed
    call = _read_call(value, marked=marked)
    return JsonReply((call,)) if isinstance(call, WrittenCall) else call


def _read_list(
    values: list[JsonValue], *, text_protocol: bool, marked: bool = False
) -> JsonReply | UnreadableCall | None:
    if not values:
        return JsonReply((), text_protocol=True) if text_protocol else None
    results = [
        read_value(value, text_protocol=text_protocol, marked=marked) if isinstance(value, dict) else None
        for value in values
    ]
    replies = [result for result in results if isinstance(result, JsonReply)]
    if not replies:
        return next((result for result in results if isinstance(result, UnreadableCall)), None)
    if len(replies) < len(results):
        return UnreadableCall(text("calls.some_items"))
    return JsonReply(
        tuple(call for result in replies for call in result.calls),
        "\n".join(result.comment for result in replies if result.comment),
        any(result.text_protocol for result in replies),
    )


def _read_own_form(value: JsonObject) -> JsonReply | UnreadableCall | None:
    """Return the calls of an action list, an action, or a command; None for other JSON."""
    is_list = any(isinstance(value.get(name, ""), list | NoneType) for name in _LISTS)
    is_command = (
        isinstance(value.get("command"), dict)
        or "done" in value
        or bool(set(value) <= _PROTOCOL_KEYS and value)
    )
    if is_list or (not is_command and isinstance(value.get("operation"), str)):
        return _read_actions(value)
    return _read_command(value) if is_command else None


def _read_actions(value: JsonObject) -> JsonReply | UnreadableCall:
    """Parse an action list under any of its names, or one action."""
    name = next((name for name in _LISTS if name in value), "")
    try:
        parsed = ActionsReply.model_validate({"actions": (value[name] or []) if name else [value]})
    except ValidationError as error:
        return UnreadableCall(describe_error(error))
    calls = tuple(WrittenCall(a.operation.strip(), a.args, a.id, a.reasoning) for a in parsed.actions)
    return JsonReply(calls, _find_comment(value) if name else "", text_protocol=True)


def _read_command(value: JsonObject) -> JsonReply | UnreadableCall:
    """Parse one command or the end (R2.47–R2.51). The outer comment overrides the command's own (C2.2)."""
    command = value.get("command")
    if isinstance(command, dict):
        tool, args = command.get("tool"), command.get("args")
        if not isinstance(tool, str) or not tool.strip():
            return UnreadableCall(text("forms.command_tool"))
        if not isinstance(args, dict | NoneType):
            return UnreadableCall(text("calls.bad_arguments", name=tool.strip()))
        call = WrittenCall(tool.strip(), args or {})
        return JsonReply((call,), _find_comment(value) or _find_comment(command), text_protocol=True)
    if value.get("done") is True:
        return JsonReply((), _find_comment(value), text_protocol=True)
    if "done" in value and "command" not in value:
        return UnreadableCall(text("forms.done"))
    return UnreadableCall(text("forms.command_or_done"))


def _find_comment(value: JsonObject) -> str:
    return next(
        (comment for key in _COMMENT_KEYS if isinstance(comment := value.get(key), str) and comment), ""
    )


def _read_call(value: JsonObject, *, marked: bool = False) -> WrittenCall | UnreadableCall | None:
    """Parse `{"name": …, "arguments": …}` in any of its spellings; None for a tool's definition."""
    inner = value.get("function")
    if isinstance(inner, dict) and set(value) <= {"function", *_EXTRA_KEYS}:
        call = _read_call(inner, marked=marked)
        outer = value.get("id")
        return call._replace(id=outer) if isinstance(call, WrittenCall) and isinstance(outer, str) else call
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), "")
    args = next((key for key in _ARGS if key in value), "")
    if not name or not (args or marked) or not set(value) <= {name, args, *_EXTRA_KEYS}:
        return None
    raw_args = value.get(args)
    if (
        isinstance(raw_args, dict)
        and raw_args.get("type") == "object"
        and isinstance(raw_args.get("properties"), dict)
    ):
        return None  # the schema of a tool, not a call
    tool = str(value[name]).strip()
    parsed_args = parse_object(raw_args)
    if parsed_args is None:
        return UnreadableCall(text("calls.bad_arguments", name=tool))
    call_id = value.get("id", value.get("action_id"))
    reasoning = value.get("reasoning")
    return WrittenCall(
        tool,
        parsed_args,
        str(call_id) if isinstance(call_id, str | int) else "",
        reasoning if isinstance(reasoning, str) else None,
    )


# -- values in a text -----------------------------------------------------------------------------

_SEPARATORS = re.compile(r"[\s;,]*")
_STARTS_LIKE_JSON = re.compile(r"\{\s*(?:[{\"'\w]|$)|\[\s*(?:[{\]]|$)")


class JsonValues(NamedTuple):
    """JSON values that follow each other in a text, and the end of the last one."""

    values: tuple[JsonValue, ...]
    end: int


def parse_values(reply: str, at: int = 0) -> JsonValues | UnreadableCall:
    """Parse the JSON values from `at` on, separated only by blanks, `;`, and `,`."""
    values: list[JsonValue] = []
    end = at
    while match := _STARTS_LIKE_JSON.match(reply, at := _SEPARATORS.match(reply, at).end()):  # pyright: ignore[reportOptionalMemberAccess]  # matches nothing too
        try:
            value, at = DECODER.raw_decode(reply, match.start())
        except (ValueError, RecursionError) as error:
            unwrapped = _read_double_braces(reply, match.start())
            if unwrapped is None:
                return UnreadableCall(describe_json_error(error))
            value, at = unwrapped
        values.append(replace_lone_surrogates(value))
        end = at
    return JsonValues(tuple(values), end)


def parse_complete(text: str) -> JsonValues | UnreadableCall | None:
    """Parse all of `text` as JSON values; None if it is not JSON, UnreadableCall if it is broken."""
    text = text.strip()
    if not _STARTS_LIKE_JSON.match(text):
        return None
    parsed = parse_values(text)
    if isinstance(parsed, JsonValues):
        rest = _SEPARATORS.sub("", text[parsed.end :], count=1)
        return parsed if not rest else None
    value = repair_whole_json(text)
    return parsed if value is None else JsonValues((value,), len(text))


def _read_double_braces(text: str, at: int) -> tuple[JsonValue, int] | None:
    """Parse a value in doubled braces, as in a template; None if there is none."""
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
    """Return True if `parse_python_calls` may find calls at `at`."""
    return _PYTHON.match(text, at) is not None


def parse_python_calls(text: str) -> tuple[WrittenCall, ...] | None:
    """Parse `[a_tool(x="1"), …]` or one such call per line, with or without `print`; None for other text."""
    if not _PYTHON.match(text):
        return None
    try:
        lines = ast.parse(text.strip(), mode="exec").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls: list[WrittenCall] = []
    for line in lines:
        if not isinstance(line, ast.Expr):
            return None
        for node in line.value.elts if isinstance(line.value, ast.List) else [line.value]:
            call = _read_python_call(node)
            if call is None:
                return None
            calls.append(call)
    return tuple(calls) or None


def _read_python_call(node: ast.expr) -> WrittenCall | None:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return _read_python_call(inner)
        case ast.Call(args=[], keywords=keywords):
            try:
                args = {word.arg: _to_json(word.value) for word in keywords if word.arg is not None}
            except (ValueError, TypeError, RecursionError):
                return None
            return WrittenCall(ast.unparse(node.func), args) if len(args) == len(keywords) else None
        case _:
            return None


class _JsonNames(ast.NodeTransformer):
    """Transformer that replaces JSON's constant names by their values."""

    def visit_Name(self, node: ast.Name) -> ast.expr:  # name required by `ast`
        return ast.Constant(_LITERALS[node.id]) if node.id in _LITERALS else node


def _to_json(node: ast.expr) -> JsonValue:
    """Return the JSON value of a literal. Raises ValueError or TypeError for anything else."""
    return cast("JsonValue", json.loads(json.dumps(ast.literal_eval(_JsonNames().visit(node)))))
