"""`textDocument/codeAction` and `codeAction/resolve`: list code actions without calling a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.runs import Range
from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.initialize import FIX, REWRITE, SOURCE, Json
from daiku.fronts.lsp.wire.jsontext import write_json
from daiku.team.rules.drafting.headings import is_prose
from daiku.texts.text import render, text

AUTOMATIC = 2
"""Trigger kind of requests that the client sends automatically."""
MOST_FIXES = 20
"""Maximum number of fix actions."""
TITLE = 80
"""Maximum characters of a problem in a title."""


class _Params(BaseModel):
    """LSP params; other keys are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _DocumentRef(_Params):
    uri: str


class ListedDiagnostic(_Params):
    """A diagnostic, with all its fields to send back."""

    model_config = ConfigDict(extra="allow")

    range: Range
    message: str

    @property
    def all_fields(self) -> JsonObject:
        return {**self.model_dump(), **(self.model_extra or {})}


class _Context(_Params):
    diagnostics: tuple[ListedDiagnostic, ...] = ()
    only: tuple[str, ...] | None = None
    trigger: int | None = Field(default=None, alias="triggerKind")


class ListParams(_Params):
    document: _DocumentRef = Field(alias="textDocument")
    range: Range
    context: _Context = _Context()


class ResolveParams(BaseModel):
    """A listed action; fields that the client added are returned unchanged."""

    model_config = ConfigDict(extra="allow")

    title: str
    command: Any = None
    data: Any = None


async def code_actions(c: ClientConnection, params: Json) -> str:
    """Answer `textDocument/codeAction`. Raises pydantic.ValidationError."""
    list_params = ListParams.model_validate(params if params is not None else {})
    actions = [
        a
        for a in _actions(list_params, c.protocol.language)
        if _matches_kinds(str(a["kind"]), list_params.context.only)
    ]
    if not c.offer.action_literals:
        return write_json([_command(a) for a in actions])
    if not c.offer.lazy_actions:
        return write_json([_resolve(a) for a in actions])
    return write_json(actions)


async def resolve_action(_: ClientConnection, params: Json) -> str:
    """Answer `codeAction/resolve`: the same action with its command. Raises pydantic.ValidationError."""
    action = ResolveParams.model_validate(params if params is not None else {})
    return write_json(_resolve(action.model_dump(exclude_none=True)))


def _actions(list_params: ListParams, language: str) -> Iterator[JsonObject]:
    def translate(key: str) -> str:
        return render(text(key), language)

    uri, where = list_params.document.uri, list_params.range
    yield from _fixes(list_params, language)
    is_automatic = list_params.context.trigger == AUTOMATIC
    place: JsonObject = {"uri": uri, "range": where.model_dump()}
    if where.start != where.end:
        refactor: JsonObject = {**place, "instruction": translate("action.refactor"), "ask": True}
        yield _action(translate("action.refactor_title"), REWRITE, "daiku.generateCode", refactor)
        if is_prose(uri):
            revise: JsonObject = {**place, "instruction": translate("action.revise"), "ask": True}
            yield _action(translate("action.revise_title"), REWRITE, "daiku.document", revise)
        else:
            yield _action(translate("action.document_title"), REWRITE, "daiku.document", place)
        yield _action(translate("action.tests_title"), REWRITE, "daiku.writeTests", place)
        translation: JsonObject = {**place, "instruction": translate("action.translate")}
        yield _action(translate("action.translate_title"), REWRITE, "daiku.generateCode", translation)
    if not is_automatic:
        yield _action(translate("action.explain_title"), SOURCE, "daiku.explain", place)
        yield _action(translate("action.review_title"), SOURCE, "daiku.review", {"uri": uri})


def _fixes(list_params: ListParams, language: str) -> Iterator[JsonObject]:
    """Yield one action per problem, and one for all if there are several."""
    diagnostics = list({(d.message, d.range.start.line): d for d in list_params.context.diagnostics}.values())
    for diagnostic in diagnostics[:MOST_FIXES]:
        yield _fix(
            render(text("action.fix_one", problem=_one_line(diagnostic.message)), language),
            list_params.document.uri,
            [diagnostic],
        )
    if len(diagnostics) > 1:
        yield _fix(
            render(text("action.fix_all", count=len(diagnostics)), language),
            list_params.document.uri,
            diagnostics,
        )


def _fix(title: str, uri: str, problems: list[ListedDiagnostic]) -> JsonObject:
    start = min((p.range.start for p in problems), key=lambda p: (p.line, p.character))
    end = max((p.range.end for p in problems), key=lambda p: (p.line, p.character))
    place: JsonValue = Range(start=start, end=end).model_dump()
    complete: list[JsonValue] = [p.all_fields for p in problems]
    arguments: JsonObject = {"uri": uri, "range": place, "diagnostics": complete}
    return {**_action(title, FIX, "daiku.fix", arguments), "diagnostics": complete}


def _action(title: str, kind: str, command: str, arguments: JsonObject) -> JsonObject:
    return {"title": title, "kind": kind, "data": {"command": command, "arguments": arguments}}


def _resolve(action: JsonObject) -> JsonObject:
    data = action.get("data")
    if action.get("command") is not None or not isinstance(data, dict) or "command" not in data:
        return action
    return {**action, "command": _command(action)}


def _command(action: JsonObject) -> JsonObject:
    data = action["data"]
    assert isinstance(data, dict), "only asked of actions with data"
    return {"title": action["title"], "command": data["command"], "arguments": [data.get("arguments", {})]}


def _matches_kinds(kind: str, only: tuple[str, ...] | None) -> bool:
    """Return True if no kind was requested, or `kind` is or specializes a requested one."""
    return not only or any(not o or kind == o or kind.startswith(f"{o}.") for o in only)


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
