"""Answers as JSON, what went wrong as a status with its sentence, and bodies read within bounds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from daiku.domain.base import JsonObject, Localizable
from daiku.domain.errors import DaikuError, Failure, FailureKind, UsageError
from daiku.texts.catalogue import language_of
from daiku.texts.text import text

log = logging.getLogger(__name__)

BODY_SECONDS = 30.0
"""A body that takes longer to arrive is not waited for."""
STATUS: Mapping[FailureKind, int] = {"not_found": 404, "busy": 409, "no_provider": 503, "auth": 503}
"""The status of a failure by its kind; of others 422 where the client was wrong, else 500."""
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

P = TypeVar("P", bound=BaseModel)
_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class Unfit(Exception):
    """What was asked does not fit: every problem, in one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, failure: Failure) -> None:
        super().__init__(failure.message)
        self.status, self.failure = status, failure


def json_answer(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The answer of JSON text."""
    sent = {**HEADERS, **(headers or {})}
    return Response(body.encode("utf-8", "replace"), status, sent, media_type="application/json")


def model_answer(request: Request, model: BaseModel | None) -> Response:
    """The answer of a value, its sentences in the client's language."""
    if model is None:
        return json_answer("null")
    if isinstance(model, Localizable):
        model = model.in_language(language(request.scope))
    return json_answer(model.model_dump_json(by_alias=True, exclude_none=True))


def failure_answer(
    scope: Scope,
    status: int,
    failure: Failure,
    problems: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer that says what is wrong: `kind`, `message`, `hint`, and `problems` where there is a list."""
    told = failure.in_language(language(scope)).model_dump(mode="json", by_alias=True)
    body: JsonObject = {name: told[name] for name in ("kind", "message", "hint")}
    if problems:
        body["problems"] = list(problems)
    return json_answer(_OBJECT.dump_json(body).decode(), status, headers)


def language(scope: Scope) -> str:
    """The first language that the client would like to read."""
    for name, value in scope["headers"]:
        if name == b"accept-language":
            return language_of(value.decode("latin-1").partition(",")[0].partition(";")[0].strip())
    return language_of("")


async def read_object(request: Request, limit: int) -> JsonObject:
    """The JSON object that a request carries; empty where it carries nothing. Raises Refused, Unfit."""
    raw = await _body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and kind in ("", "application/json"):
        return {}
    if kind != "application/json":
        raise Refused(415, Failure(kind="usage", message=text("http.not_json")))
    try:
        return _OBJECT.validate_json(raw)
    except ValidationError as wrong:
        raise Unfit(problems_of(wrong)) from None


async def _body(request: Request, limit: int) -> bytes:
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise Refused(413, Failure(kind="usage", message=text("http.too_large", bytes=limit)))
                parts.append(part)
    except TimeoutError:
        raise Refused(408, Failure(kind="timeout", message=text("http.slow"))) from None
    return b"".join(parts)


def checked(model: type[P], given: JsonObject) -> P:
    """`given` as `model`. Raises Unfit with every problem."""
    try:
        return model.model_validate(given)
    except ValidationError as wrong:
        raise Unfit(problems_of(wrong)) from None


def problems_of(error: ValidationError) -> list[str]:
    """Every problem in one line each: where, and what is wrong."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}" for each in found]


async def answer_failure(request: Request, wrong: Exception) -> Response:
    """The answer for whatever a request raised."""
    scope = request.scope
    match wrong:
        case Unfit():
            unfit = Failure(kind="usage", message=text("http.unfit"))
            return failure_answer(scope, 422, unfit, wrong.problems)
        case Refused():
            close = {"connection": "close"} if wrong.status in (408, 413) else None
            return failure_answer(scope, wrong.status, wrong.failure, headers=close)
        case UsageError(failure=failure):
            status = STATUS.get(failure.kind, 422)
            return failure_answer(scope, status, failure, [failure.message] if status == 422 else ())
        case DaikuError():
            return failure_answer(scope, STATUS.get(wrong.failure.kind, 500), wrong.failure)
        case HTTPException(status_code=status, headers=headers):
            missing = Failure(kind="not_found", message=text("http.404"))
            other = Failure(kind="usage", message=text("http.405"))
            return failure_answer(scope, status, missing if status == 404 else other, headers=headers)
        case _:
            log.error("a request failed", exc_info=wrong)
            said = text("http.internal", what=type(wrong).__name__)
            return failure_answer(scope, 500, Failure(kind="internal", message=said))
