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
"""The trigger kind of a client that asks by itself, not because the person did."""
MOST_FIXES = 20
TITLE = 80


class _Params(BaseModel):
    """LSP's own params; other keys are the client's business."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _Document(_Params):
    uri: str


class ListedDiagnostic(_Params):
    """A diagnostic: its message, and the whole of it to hand back."""

    model_config = ConfigDict(extra="allow")

    range: Range
    message: str

    @property
    def whole(self) -> JsonObject:
        return {**self.model_dump(), **(self.model_extra or {})}


class _Context(_Params):
    diagnostics: tuple[ListedDiagnostic, ...] = ()
    only: tuple[str, ...] | None = None
    trigger: int | None = Field(default=None, alias="triggerKind")


class ListParams(_Params):
    document: _Document = Field(alias="textDocument")
    range: Range
    context: _Context = _Context()


class ResolveParams(BaseModel):
    """An action as we listed it; what the client added to it goes back as it came."""

    model_config = ConfigDict(extra="allow")

    title: str
    command: Any = None
    data: Any = None


async def code_actions(c: ClientConnection, params: Json) -> str:
    """Answer `textDocument/codeAction`. Raises pydantic.ValidationError."""
    asked = ListParams.model_validate(params if params is not None else {})
    actions = [a for a in _actions(asked, c.protocol.language) if _wanted(str(a["kind"]), asked.context.only)]
    if not c.offer.action_literals:
        return write_json([_command(a) for a in actions])
    if not c.offer.lazy_actions:
        return write_json([_resolved(a) for a in actions])
    return write_json(actions)


async def resolve_action(_: ClientConnection, params: Json) -> str:
    """Answer `codeAction/resolve`: the same action with its command. Raises pydantic.ValidationError."""
    action = ResolveParams.model_validate(params if params is not None else {})
    return write_json(_resolved(action.model_dump(exclude_none=True)))


def _actions(asked: ListParams, language: str) -> Iterator[JsonObject]:
    def said(key: str) -> str:
        return render(text(key), language)

    uri, where = asked.document.uri, asked.range
    yield from _fixes(asked, language)
    by_itself = asked.context.trigger == AUTOMATIC
    here: JsonObject = {"uri": uri, "range": where.model_dump()}
    if where.start != where.end:
        refactor: JsonObject = {**here, "instruction": said("action.refactor"), "ask": True}
        yield _action(said("action.refactor_title"), REWRITE, "daiku.generateCode", refactor)
        if is_prose(uri):
            revise: JsonObject = {**here, "instruction": said("action.revise"), "ask": True}
            yield _action(said("action.revise_title"), REWRITE, "daiku.document", revise)
        else:
            yield _action(said("action.document_title"), REWRITE, "daiku.document", here)
        yield _action(said("action.tests_title"), REWRITE, "daiku.writeTests", here)
        translate: JsonObject = {**here, "instruction": said("action.translate")}
        yield _action(said("action.translate_title"), REWRITE, "daiku.generateCode", translate)
    if not by_itself:
        yield _action(said("action.explain_title"), SOURCE, "daiku.explain", here)
        yield _action(said("action.review_title"), SOURCE, "daiku.review", {"uri": uri})


def _fixes(asked: ListParams, language: str) -> Iterator[JsonObject]:
    """One for each problem, and one for all where there are several."""
    found = list({(d.message, d.range.start.line): d for d in asked.context.diagnostics}.values())
    for one in found[:MOST_FIXES]:
        yield _fix(
            render(text("action.fix_one", problem=_one_line(one.message)), language),
            asked.document.uri,
            [one],
        )
    if len(found) > 1:
        yield _fix(render(text("action.fix_all", count=len(found)), language), asked.document.uri, found)


def _fix(title: str, uri: str, problems: list[ListedDiagnostic]) -> JsonObject:
    start = min((p.range.start for p in problems), key=lambda p: (p.line, p.character))
    end = max((p.range.end for p in problems), key=lambda p: (p.line, p.character))
    place: JsonValue = Range(start=start, end=end).model_dump()
    wholes: list[JsonValue] = [p.whole for p in problems]
    arguments: JsonObject = {"uri": uri, "range": place, "diagnostics": wholes}
    return {**_action(title, FIX, "daiku.fix", arguments), "diagnostics": wholes}


def _action(title: str, kind: str, command: str, arguments: JsonObject) -> JsonObject:
    return {"title": title, "kind": kind, "data": {"command": command, "arguments": arguments}}


def _resolved(action: JsonObject) -> JsonObject:
    data = action.get("data")
    if action.get("command") is not None or not isinstance(data, dict) or "command" not in data:
        return action
    return {**action, "command": _command(action)}


def _command(action: JsonObject) -> JsonObject:
    data = action["data"]
    assert isinstance(data, dict), "only asked of actions with data"
    return {"title": action["title"], "command": data["command"], "arguments": [data.get("arguments", {})]}


def _wanted(kind: str, only: tuple[str, ...] | None) -> bool:
    """True where no kind was asked for, or `kind` or one above it."""
    return not only or any(not o or kind == o or kind.startswith(f"{o}.") for o in only)


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
