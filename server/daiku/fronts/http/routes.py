"""HTTP endpoints (PROTOCOL 7) and their table."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field, field_validator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from daiku import api
from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject, Wire
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import ClientApprovals, ContextItem, Mode, RunLimits, RunResult
from daiku.fronts.http.access import (
    MAX_BODY,
    InvalidRequest,
    RequestRejected,
    failure_response,
    json_response,
    model_response,
    read_object,
    request_language,
    respond_to_error,
    validate_fields,
)
from daiku.fronts.http.work import EventStream, HttpRuns, StreamedRun
from daiku.library.fronts import Listener, RunRequest
from daiku.library.offers import agents_of, delete_session, models_of, tools_of
from daiku.texts.text import text

Endpoint = Callable[[HttpRuns, Request], Awaitable[ASGIApp]]
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
MAX_SEQ = 2**53 - 1
"""Largest integer that every JSON reader represents exactly (C1.10)."""


class SessionStartBody(Wire):
    """Body of `POST /v1/sessions`."""

    title: Annotated[str, Field(max_length=1000)] | None = None


class TailQuery(Wire):
    """Query parameter `after_seq`: the last chunk that the client has."""

    after_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] = 0


class RunStartBody(Wire):
    """Body of `POST /v1/sessions/{id}/runs`."""

    text: str
    agent: api.Id = "coordinator"
    mode: Mode = "act"
    model: str | None = None
    context: tuple[ContextItem, ...] = ()
    approvals: ClientApprovals = "ask"
    limits: RunLimits | None = None

    @field_validator("text")
    @classmethod
    def _check_text(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("say what to do")
        return value


class RunResumeBody(api.RunRef):
    """Body of `POST /v1/runs/{id}/resume`."""

    approvals: ClientApprovals = "ask"
    model: str = ""


async def healthy(_work: HttpRuns, _request: Request) -> ASGIApp:
    return json_response('{"status":"ok"}')


async def session_new(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(SessionStartBody, await read_object(request, MAX_BODY))
    return model_response(request, work.app.journal.new_session(body.title or "", work.workspace))


async def session_list(work: HttpRuns, request: Request) -> ASGIApp:
    query = validate_fields(api.SessionListParams, _query(request))
    sessions = work.app.journal.list_sessions(query.query or "", query.limit, work.workspace)
    return model_response(request, api.SessionListResult(sessions=tuple(sessions)))


async def session_get(work: HttpRuns, request: Request) -> ASGIApp:
    session = work.app.journal.get_session(_path_id(request))
    after = validate_fields(TailQuery, _query(request)).after_seq
    chunks = ",".join(chunk.json() for chunk in work.app.journal.chunks(session.session_id, after))
    session_json = session.model_dump_json(by_alias=True, exclude_none=True)
    return json_response(f'{{"session":{session_json},"chunks":[{chunks}]}}')


async def session_delete(work: HttpRuns, request: Request) -> ASGIApp:
    await delete_session(work.app, session := _path_id(request))
    work.channels.end(session)
    return model_response(request, None)


async def session_run(work: HttpRuns, request: Request) -> ASGIApp:
    work.app.journal.last_seq(session := _path_id(request))  # raises UsageError if there is none
    body = validate_fields(RunStartBody, await read_object(request, MAX_BODY))
    run_request = RunRequest(
        body.text,
        session=session,
        mode=body.mode,
        model=body.model or "",
        agent=body.agent,
        context=body.context,
        limits=body.limits,
        approvals=body.approvals,
    )
    return _stream(work, await work.start(session, partial(work.app.runs.run, run_request)))


async def session_events(work: HttpRuns, request: Request) -> ASGIApp:
    query = _query(request)
    if last := request.headers.get("last-event-id", "").strip():
        query["after_seq"] = last  # the current position of a reconnecting client
    after = validate_fields(TailQuery, query).after_seq
    reader = work.follow(_path_id(request), after)
    return EventStream(reader, partial(work.leave, reader))


async def run_resume(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(RunResumeBody, await _read_run_body(request))
    session = work.app.journal.session_of_run(body.run_id)

    def resume(listen: Listener) -> Awaitable[RunResult]:
        return work.app.runs.resume(body.run_id, listen, body.approvals, model=body.model)

    return _stream(work, await work.start(session, resume))


async def run_pause(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(api.RunRef, await _read_run_body(request))
    return model_response(request, await work.app.runs.pause(body.run_id))


async def run_cancel(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(api.RunRef, await _read_run_body(request))
    return _publish_recorded(work, body.run_id, request, await work.app.runs.cancel(body.run_id))


async def run_approve(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(api.ApproveParams, await _read_run_body(request))
    await work.app.runs.approve(body.run_id, body.approval_id, body.decision, body.feedback, body.hunks)
    return _publish_recorded(work, body.run_id, request)


async def run_answer(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(api.AnswerParams, await _read_run_body(request))
    await work.app.runs.answer(body.run_id, body.input_id, body.text)
    return _publish_recorded(work, body.run_id, request)


async def run_steer(work: HttpRuns, request: Request) -> ASGIApp:
    body = validate_fields(api.SteerParams, await _read_run_body(request))
    await work.app.runs.steer(body.run_id, body.text)
    return model_response(request, None)


async def models(work: HttpRuns, request: Request) -> ASGIApp:
    return model_response(request, await models_of(work.app, request_language(request.scope)))


async def tools(work: HttpRuns, request: Request) -> ASGIApp:
    return model_response(request, tools_of(work.app))


async def agents(work: HttpRuns, request: Request) -> ASGIApp:
    return model_response(request, agents_of(work.app))


ROUTES: tuple[tuple[str, str, Endpoint], ...] = (
    ("GET", "/healthz", healthy),
    ("POST", "/v1/sessions", session_new),
    ("GET", "/v1/sessions", session_list),
    ("GET", "/v1/sessions/{id}", session_get),
    ("DELETE", "/v1/sessions/{id}", session_delete),
    ("POST", "/v1/sessions/{id}/runs", session_run),
    ("GET", "/v1/sessions/{id}/events", session_events),
    ("POST", "/v1/runs/{id}/resume", run_resume),
    ("POST", "/v1/runs/{id}/pause", run_pause),
    ("POST", "/v1/runs/{id}/cancel", run_cancel),
    ("POST", "/v1/runs/{id}/approve", run_approve),
    ("POST", "/v1/runs/{id}/answer", run_answer),
    ("POST", "/v1/runs/{id}/steer", run_steer),
    ("GET", "/v1/models", models),
    ("GET", "/v1/tools", tools),
    ("GET", "/v1/agents", agents),
)


def make_app(work: HttpRuns) -> Starlette:
    """Build the ASGI application, without access control."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for method, path, endpoint in ROUTES:
        by_path.setdefault(path, {})[method] = endpoint
    routes = [
        Route(path, _Endpoints(work, endpoints), methods=[*endpoints]) for path, endpoints in by_path.items()
    ]
    asgi_app = Starlette(
        routes=routes, exception_handlers={Exception: respond_to_error, HTTPException: respond_to_error}
    )
    asgi_app.router.redirect_slashes = False
    return asgi_app


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The endpoints of one path, by method."""

    work: HttpRuns
    ends: dict[str, Endpoint]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response: ASGIApp
        try:
            response = await self.ends["GET" if request.method == "HEAD" else request.method](
                self.work, request
            )
        except UsageError as error:
            if request.url.path.startswith("/v1/runs/") and error.failure.kind == "usage":
                response = failure_response(scope, 409, error.failure)  # valid, but not in the run's state
            else:
                response = await respond_to_error(request, error)
        except (DaikuError, RequestRejected, InvalidRequest) as error:
            response = await respond_to_error(request, error)
        await response(scope, receive, send)


def _path_id(request: Request) -> str:
    """Return the id in the path. Raises UsageError if it is invalid."""
    path_id: str = request.path_params["id"]
    if not _ID.fullmatch(path_id):
        raise UsageError(Failure(kind="not_found", message=text("http.404")))
    return path_id


def _query(request: Request) -> JsonObject:
    return dict(request.query_params)


async def _read_run_body(request: Request) -> JsonObject:
    """Return the body of a request about a run, whose `runId` must match the path. Raises InvalidRequest."""
    run, body = _path_id(request), await read_object(request, MAX_BODY)
    if body.setdefault("runId", run) != run:
        raise InvalidRequest(["runId: not the run of the address"])
    return body


def _publish_recorded(work: HttpRuns, run: str, request: Request, result: BaseModel | None = None) -> ASGIApp:
    """Respond to a request that may have written to the journal, and show its entries to readers."""
    work.channels.check_journal(work.app.journal.session_of_run(run))
    return model_response(request, result)


def _stream(work: HttpRuns, streamed: StreamedRun) -> EventStream:
    return EventStream(streamed.reader, partial(work.leave, streamed.reader), lambda: streamed.result)
