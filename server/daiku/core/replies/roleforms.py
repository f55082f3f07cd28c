"""The JSON forms of researcher and runner: queries, commands, a repair; what is wrong is told in the form's words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from daiku.core.replies.parse import SEVERAL, Unreadable, json_values, read_json
from daiku.dataclass import dataclass
from daiku.texts.text import text

MAX_QUERIES = 3
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class QueriesReply:
    """What the researcher wants to look up (at most three) and ask the person (R0.44–R0.49).
    `whole`: both keys were there."""

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


@dataclass(frozen=True, slots=True)
class _Kind(Generic[Form]):
    """One kind of form: the keys that show that a reply meant it, how a JSON value is read, and how
    several forms in one reply become one (`alone`: nothing else stands there); None where they cannot."""

    keys: str
    check: Callable[[JsonValue], Form]
    together: Callable[[Sequence[Form], bool], Form | None]


def read_queries(reply: str, *, cut: bool = False) -> QueriesReply | Unreadable:
    """`{"queries": […], "ask_user": "…"}`. Without `ask_user` there is no question (C0.1)."""
    return _read(reply, _QUERIES, cut=cut)


def read_commands(reply: str, *, cut: bool = False) -> CommandsReply | Unreadable:
    """`{"commands": […]}`; one command may stand alone, and each may be an object that names it."""
    return _read(reply, _COMMANDS, cut=cut)


def read_repair(reply: str, *, cut: bool = False) -> RepairReply | Unreadable:
    """`{"action": "command" | "patch" | "stop", …}`."""
    return _read(reply, _REPAIR, cut=cut)


def _read(reply: str, kind: _Kind[Form], *, cut: bool) -> Form | Unreadable:
    """The form in `reply`. Several that differ are one where nothing but them stands there; with other
    words around them nobody can tell an example from what is meant, and the model is asked."""
    found = read_json(reply, kind.check, cut=cut)
    forms = tuple(dict.fromkeys(_forms(json_values(reply), kind.check)))
    if isinstance(found, Unreadable):
        one = kind.together(forms, _nothing_else(reply)) if forms and not cut else None
        meant = re.search(rf"[\"'“”]?(?:{kind.keys})[\"'“”]?\s*[:：]", reply) or _BARE.match(reply)
        return one or (found if meant else Unreadable(found.problem, words_only=bool(reply.strip())))
    if len(forms) < 2:
        return found
    return kind.together(forms, _nothing_else(reply)) or Unreadable(SEVERAL)


def _forms(values: Sequence[JsonValue], check: Callable[[JsonValue], Form]) -> list[Form]:
    forms: list[Form] = []
    for value in values:
        for each in value if isinstance(value, list) else (value,):
            try:
                forms.append(check(each))
            except ValueError:
                continue
    return forms


def _nothing_else(reply: str) -> bool:
    """Whether a reply is JSON values and nothing besides, fences apart."""
    rest = _FENCE_LINE.sub("", reply).strip()
    decoder = json.JSONDecoder(strict=False)
    while rest:
        try:
            _, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            return False
        rest = rest[end:].lstrip(" \t\r\n,;")
    return True


_BARE = re.compile(r"\s*(?:`{3,}\w*\s*)?[{\[]")
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\w*[ \t]*$", re.MULTILINE)
_SAME = {
    "queries": ("queries", "クエリ", "検索クエリ"),
    "ask_user": ("ask_user", "質問"),
    "commands": ("commands", "コマンド"),
    "command": ("command", "cmd", "run", "コマンド"),
    "query": ("query", "q", "クエリ"),
}
"""The names that a key of a form may have: the form's own first, then those of other languages and habits."""


def _get(value: dict[str, JsonValue], key: str) -> JsonValue:
    return next((value[name] for name in _SAME[key] if name in value), None)


def _object(value: JsonValue, keys: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise ValueError(text("forms.object", keys=keys))  # noqa: TRY004  # what read_json catches
    return value


def _queries(value: JsonValue) -> QueriesReply:
    found = _object(value, '"queries" and "ask_user"')
    if not any(name in found for name in _SAME["queries"]):
        raise ValueError(text("forms.missing", name="queries"))
    queries, ask = _get(found, "queries"), _get(found, "ask_user")
    if not isinstance(queries, list):
        raise ValueError(text("forms.list", name="queries"))  # noqa: TRY004  # what read_json catches
    if not isinstance(ask, str | None):
        raise ValueError(text("forms.text", name="ask_user"))  # noqa: TRY004  # what read_json catches
    whole = any(name in found for name in _SAME["ask_user"])
    return QueriesReply(_texts(queries, "queries", "query")[:MAX_QUERIES], ask or "", whole)


def _commands(value: JsonValue) -> CommandsReply:
    found = _object(value, '"commands"')
    if any(name in found for name in _SAME["commands"]):
        commands = _get(found, "commands")
    elif "action" not in found and isinstance(found.get("command"), str):
        commands = found["command"]
    else:
        raise ValueError(text("forms.missing", name="commands"))
    listed: JsonValue = [commands] if isinstance(commands, str) else commands
    if not isinstance(listed, list):
        raise ValueError(text("forms.list", name="commands"))  # noqa: TRY004  # what read_json catches
    return CommandsReply(_texts(listed, "commands", "command"))


def _texts(items: list[JsonValue], name: str, key: str) -> tuple[str, ...]:
    """The items of a list that are texts, or objects that hold one under `key`; blank ones are none."""
    texts: list[str] = []
    for number, item in enumerate(items, 1):
        said = _get(item, key) if isinstance(item, dict) else item
        if not isinstance(said, str):
            raise ValueError(text("forms.item", number=number, name=name))  # noqa: TRY004  # what read_json catches
        texts.append(said)
    return tuple(said for said in texts if said.strip())


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


def _all_queries(forms: Sequence[QueriesReply], alone: bool) -> QueriesReply | None:
    queries = dict.fromkeys(query for form in forms for query in form.queries)
    questions = dict.fromkeys(form.ask_user for form in forms if form.ask_user)
    return QueriesReply(tuple(queries)[:MAX_QUERIES], "\n".join(questions)) if alone else None


def _all_commands(forms: Sequence[CommandsReply], alone: bool) -> CommandsReply | None:
    return CommandsReply(tuple(command for form in forms for command in form.commands)) if alone else None


def _one_repair(forms: Sequence[RepairReply], _alone: bool) -> RepairReply | None:
    """What stands below the choice of a patch is the patch, whatever it looks like."""
    return forms[0] if forms[0].action == "patch" else None


_QUERIES = _Kind("queries|ask_user|クエリ|検索クエリ", _queries, _all_queries)
_COMMANDS = _Kind("commands?|コマンド", _commands, _all_commands)
_REPAIR = _Kind("action", _repair, _one_repair)
