"""The JSON forms of researcher and runner: queries, commands, a repair; what is wrong is told in the form's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.models.rules.replies.parse import SEVERAL, Unreadable, json_values, read_json
from daiku.texts.text import text

MAX_QUERIES = 3
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class QueriesReply:
    """At most three queries, and a question to the user (R0.44–R0.49). `whole`: both keys were there."""

    queries: tuple[str, ...]
    ask_user: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class CommandsReply:
    """The runner's commands, in order (R0.77–R0.83)."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairReply:
    """What is to be done about a command that failed (B0.6)."""

    action: Literal["command", "patch", "stop"]
    command: str = ""
    retry: bool = False
    patch: str = ""
    reason: str = ""


def read_queries(reply: str, *, cut: bool = False) -> QueriesReply | Unreadable:
    """`{"queries": […], "ask_user": "…"}`. Without `ask_user` there is no question (C0.1)."""
    return _read(reply, "queries|ask_user", _queries, cut=cut)


def read_commands(reply: str, *, cut: bool = False) -> CommandsReply | Unreadable:
    """`{"commands": […]}`; one command may stand alone."""
    return _read(reply, "commands?", _commands, cut=cut)


def read_repair(reply: str, *, cut: bool = False) -> RepairReply | Unreadable:
    """`{"action": "command" | "patch" | "stop", …}`."""
    forms = [] if cut else _forms(json_values(reply), _repair)
    if forms and forms[0].action == "patch":
        return forms[0]  # what follows is the patch, even if it looks like another choice
    return _read(reply, "action", _repair, cut=cut)


def _read(reply: str, keys: str, check: Callable[[JsonValue], Form], *, cut: bool) -> Form | Unreadable:
    """Return the form in `reply`, whose `keys` show that it is meant. Several that differ are an error."""
    found = read_json(reply, check, cut=cut)
    if isinstance(found, Unreadable):
        meant = re.search(rf"[\"'“”]?(?:{keys})[\"'“”]?\s*[:：]", reply) or _BARE.match(reply)
        return found if meant else Unreadable(found.problem, words_only=bool(reply.strip()))
    return found if len(set(_forms(json_values(reply), check))) < 2 else Unreadable(SEVERAL)


def _forms(values: Sequence[JsonValue], check: Callable[[JsonValue], Form]) -> list[Form]:
    forms: list[Form] = []
    for value in values:
        for each in value if isinstance(value, list) else (value,):
            try:
                forms.append(check(each))
            except ValueError:
                continue
    return forms


_BARE = re.compile(r"\s*(?:`{3,}\w*\s*)?[{\[]")


def _object(value: JsonValue, keys: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise ValueError(text("forms.object", keys=keys))  # noqa: TRY004  # what read_json catches
    return value


def _queries(value: JsonValue) -> QueriesReply:
    found = _object(value, '"queries" and "ask_user"')
    if "queries" not in found:
        raise ValueError(text("forms.missing", name="queries"))
    queries, ask = found["queries"], found.get("ask_user")
    if not isinstance(queries, list):
        raise ValueError(text("forms.list", name="queries"))  # noqa: TRY004  # what read_json catches
    if not isinstance(ask, str | None):
        raise ValueError(text("forms.text", name="ask_user"))  # noqa: TRY004  # what read_json catches
    return QueriesReply(_texts(queries, "queries")[:MAX_QUERIES], ask or "", "ask_user" in found)


def _commands(value: JsonValue) -> CommandsReply:
    found = _object(value, '"commands"')
    if "commands" in found:
        commands = found["commands"]
    elif "action" not in found and isinstance(found.get("command"), str):
        commands = found["command"]
    else:
        raise ValueError(text("forms.missing", name="commands"))
    listed: JsonValue = [commands] if isinstance(commands, str) else commands
    if not isinstance(listed, list):
        raise ValueError(text("forms.list", name="commands"))  # noqa: TRY004  # what read_json catches
    return CommandsReply(_texts(listed, "commands"))


def _texts(items: list[JsonValue], name: str) -> tuple[str, ...]:
    """The items of a list of texts; blank ones are none."""
    texts: list[str] = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, str):
            raise ValueError(text("forms.item", number=number, name=name))  # noqa: TRY004  # what read_json catches
        texts.append(item)
    return tuple(item for item in texts if item.strip())


def _repair(value: JsonValue) -> RepairReply:
    found = _object(value, '"action"')
    action = found.get("action", "command" if isinstance(found.get("command"), str) else None)
    match action:
        case "command" | "patch" | "stop":
            pass
        case None:
            raise ValueError(text("forms.missing", name="action"))
        case _:
            raise ValueError(text("forms.action"))
    texts = {name: found.get(name) or "" for name in ("command", "patch", "reason")}
    for name, said in texts.items():
        if not isinstance(said, str):
            raise ValueError(text("forms.text", name=name))  # noqa: TRY004  # what read_json catches
    retry = found.get("retry") in (True, "true", "True", 1)
    return RepairReply(action, retry=retry, **{name: str(said) for name, said in texts.items()})
