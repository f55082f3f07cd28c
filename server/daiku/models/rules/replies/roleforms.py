"""Parsers for the JSON forms of researcher and runner: queries, commands, and repairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from pydantic import AliasChoices, Field, JsonValue, TypeAdapter, field_validator

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen, JsonObject
from daiku.models.rules.replies.parse import SEVERAL, Unreadable, find_json_values, read_json
from daiku.texts.text import text

MAX_ACTIONS = 50


class ActionReply(Frozen):
    """One operation of an action list; later ones refer to its result by `id` (R4.24, C4.8)."""

    operation: str = Field(
        min_length=1, validation_alias=AliasChoices("operation", "tool", "name", "tool_name")
    )
    args: JsonObject = Field(
        default={}, validation_alias=AliasChoices("args", "arguments", "parameters", "input")
    )
    reasoning: str | None = Field(default=None, validation_alias=AliasChoices("reasoning", "comment"))
    id: str = Field(default="", validation_alias=AliasChoices("id", "action_id"), coerce_numbers_to_str=True)

    @field_validator("args", mode="before")
    @classmethod
    def _as_object(cls, value: Any) -> Any:
        """Convert null to no arguments, and JSON text, which some models send, to an object."""
        if value is None:
            return {}
        if isinstance(value, str) and value.lstrip().startswith("{"):
            return TypeAdapter(JsonObject).validate_json(value)
        return value


class ActionsReply(Frozen):
    """Action list. An empty list is only an answer (C4.10)."""

    actions: tuple[ActionReply, ...] = Field(max_length=MAX_ACTIONS)


MAX_QUERIES = 3
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class QueriesReply:
    """At most three queries, and a question to the user (R0.44–R0.49). `whole`: both keys were present."""

    queries: tuple[str, ...]
    ask_user: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class CommandsReply:
    """The runner's commands, in order (R0.77–R0.83)."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairReply:
    """Decision about a failed command (B0.6)."""

    action: Literal["command", "patch", "stop"]
    command: str = ""
    retry: bool = False
    patch: str = ""
    reason: str = ""


def read_queries(reply: str, *, cut: bool = False) -> QueriesReply | Unreadable:
    """Parse `{"queries": […], "ask_user": "…"}`. Without `ask_user` there is no question (C0.1)."""
    return _read_form(reply, "queries|ask_user", _check_queries, cut=cut)


def read_commands(reply: str, *, cut: bool = False) -> CommandsReply | Unreadable:
    """Parse `{"commands": […]}`, or a single command."""
    return _read_form(reply, "commands?", _check_commands, cut=cut)


def read_repair(reply: str, *, cut: bool = False) -> RepairReply | Unreadable:
    """Parse `{"action": "command" | "patch" | "stop", …}`."""
    forms = [] if cut else _collect_forms(find_json_values(reply), _check_repair)
    if forms and forms[0].action == "patch":
        return forms[0]  # the rest is the patch, even if it looks like another action
    return _read_form(reply, "action", _check_repair, cut=cut)


def _read_form(reply: str, keys: str, check: Callable[[JsonValue], Form], *, cut: bool) -> Form | Unreadable:
    """Return the form in `reply`. Different forms are an error.

    `keys` is a pattern for the keys that show that the form is intended.
    """
    form = read_json(reply, check, cut=cut)
    if isinstance(form, Unreadable):
        is_intended = re.search(rf"[\"'“”]?(?:{keys})[\"'“”]?\s*[:：]", reply) or _STARTS_LIKE_JSON.match(
            reply
        )
        return form if is_intended else Unreadable(form.problem, words_only=bool(reply.strip()))
    return form if len(set(_collect_forms(find_json_values(reply), check))) < 2 else Unreadable(SEVERAL)


def _collect_forms(values: Sequence[JsonValue], check: Callable[[JsonValue], Form]) -> list[Form]:
    forms: list[Form] = []
    for value in values:
        for item in value if isinstance(value, list) else (value,):
            try:
                forms.append(check(item))
            except ValueError:
                continue
    return forms


_STARTS_LIKE_JSON = re.compile(r"\s*(?:`{3,}\w*\s*)?[{\[]")


def _check_object(value: JsonValue, keys: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise ValueError(text("forms.object", keys=keys))  # noqa: TRY004  # what read_json catches
    return value


def _check_queries(value: JsonValue) -> QueriesReply:
    fields = _check_object(value, '"queries" and "ask_user"')
    if "queries" not in fields:
        raise ValueError(text("forms.missing", name="queries"))
    queries, question = fields["queries"], fields.get("ask_user")
    if not isinstance(queries, list):
        raise ValueError(text("forms.list", name="queries"))  # noqa: TRY004  # what read_json catches
    if not isinstance(question, str | None):
        raise ValueError(text("forms.text", name="ask_user"))  # noqa: TRY004  # what read_json catches
    return QueriesReply(_check_texts(queries, "queries")[:MAX_QUERIES], question or "", "ask_user" in fields)


def _check_commands(value: JsonValue) -> CommandsReply:
    fields = _check_object(value, '"commands"')
    if "commands" in fields:
        commands = fields["commands"]
    elif "action" not in fields and isinstance(fields.get("command"), str):
        commands = fields["command"]
    else:
        raise ValueError(text("forms.missing", name="commands"))
    items: JsonValue = [commands] if isinstance(commands, str) else commands
    if not isinstance(items, list):
        raise ValueError(text("forms.list", name="commands"))  # noqa: TRY004  # what read_json catches
    return CommandsReply(_check_texts(items, "commands"))


def _check_texts(items: list[JsonValue], name: str) -> tuple[str, ...]:
    """Return the non-blank items of a list of strings. Raises ValueError for other items."""
    texts: list[str] = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, str):
            raise ValueError(text("forms.item", number=number, name=name))  # noqa: TRY004  # what read_json catches
        texts.append(item)
    return tuple(item for item in texts if item.strip())


def _check_repair(value: JsonValue) -> RepairReply:
    fields = _check_object(value, '"action"')
    action = fields.get("action", "command" if isinstance(fields.get("command"), str) else None)
    match action:
        case "command" | "patch" | "stop":
            pass
        case None:
            raise ValueError(text("forms.missing", name="action"))
        case _:
            raise ValueError(text("forms.action"))
    texts = {name: fields.get(name) or "" for name in ("command", "patch", "reason")}
    for name, field in texts.items():
        if not isinstance(field, str):
            raise ValueError(text("forms.text", name=name))  # noqa: TRY004  # what read_json catches
    retry = fields.get("retry") in (True, "true", "True", 1)
    return RepairReply(action, retry=retry, **{name: str(field) for name, field in texts.items()})
