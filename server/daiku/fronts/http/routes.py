"""What can be asked over HTTP (PROTOCOL 7): one short function each, and the table of them."""

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
from daiku.fronts.http.access import MAX_BODY
from daiku.fronts.http.answers import (
    Refused,
    Unfit,
    answer_failure,
    checked,
    failure_answer,
    json_answer,
    language,
    model_answer,
    read_object,
)
from daiku.fronts.http.work import EventStream, RunShown, Work
from daiku.library.fronts import Listener, RunRequest
from daiku.library.offers import agents_of, delete_session, models_of, tools_of
from daiku.texts.text import text

Endpoint = Callable[[Work, Request], Awaitable[ASGIApp]]
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
MAX_SEQ = 2**53 - 1
"""The largest number that every JSON reader knows exactly (C1.10)."""


class SessionStart(Wire):
    """The body of `POST /v1/sessions`."""

    title: Annotated[str, Field(max_length=1000)] | None = None


class TailQuery(Wire):
    """The chunk behind which to go on; in an address `after_seq`."""

    after_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] = 0


class RunStart(Wire):
    """The body of `POST /v1/sessions/{id}/runs`."""

    text: str
    agent: api.Id = "coordinator"
    mode: Mode = "act"
    model: str | None = None
    context: tuple[ContextItem, ...] = ()
    approvals: ClientApprovals = "ask"
    limits: RunLimits | None = None

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("say what to do")
        return value


class RunResume(api.RunRef):
    """The body of `POST /v1/runs/{id}/resume`."""

    approvals: ClientApprovals = "ask"
    model: str = ""


async def healthy(_work: Work, _request: Request) -> ASGIApp:
    return json_answer('{"status":"ok"}')


async def session_new(work: Work, request: Request) -> ASGIApp:
    given = checked(SessionStart, await read_object(request, MAX_BODY))
    return model_answer(request, work.app.journal.new_session(given.title or "", work.workspace))


async def session_list(work: Work, request: Request) -> ASGIApp:
    asked = checked(api.SessionListParams, _query(request))
    found = work.app.journal.list_sessions(asked.query or "", asked.limit, work.workspace)
    return model_answer(request, api.SessionListResult(sessions=tuple(found)))


async def session_get(work: Work, request: Request) -> ASGIApp:
    session = work.app.journal.get_session(_id(request))
    after = checked(TailQuery, _query(request)).after_seq
    chunks = ",".join(chunk.json() for chunk in work.app.journal.chunks(session.session_id, after))
    whole = session.model_dump_json(by_alias=True, exclude_none=True)
    return json_answer(f'{{"session":{whole},"chunks":[{chunks}]}}')


async def session_delete(work: Work, request: Request) -> ASGIApp:
    await delete_session(work.app, session := _id(request))
    work.channels.end(session)
    return model_answer(request, None)


async def session_run(work: Work, request: Request) -> ASGIApp:
    work.app.journal.last_seq(session := _id(request))  # raises where there is none
    given = checked(RunStart, await read_object(request, MAX_BODY))
    asked = RunRequest(
        given.text,
        session=session,
        mode=given.mode,
        model=given.model or "",
        agent=given.agent,
        context=given.context,
        limits=given.limits,
        approvals=given.approvals,
    )
    return _stream(work, await work.begin(session, partial(work.app.runs.run, asked)))


async def session_events(work: Work, request: Request) -> ASGIApp:
    query = _query(request)
    if last := request.headers.get("last-event-id", "").strip():
        query["after_seq"] = last  # where a reader stands now; its address says where it began
    after = checked(TailQuery, query).after_seq
    reader = work.follow(_id(request), after)
    return EventStream(reader, partial(work.leave, reader))


async def run_resume(work: Work, request: Request) -> ASGIApp:
    given = checked(RunResume, await _of_run(request))
    session = work.app.journal.session_of_run(given.run_id)

    def go_on(listen: Listener) -> Awaitable[RunResult]:
        return work.app.runs.resume(given.run_id, listen, given.approvals, model=given.model)

    return _stream(work, await work.begin(session, go_on))


async def run_pause(work: Work, request: Request) -> ASGIApp:
    given = checked(api.RunRef, await _of_run(request))
    return model_answer(request, await work.app.runs.pause(given.run_id))


async def run_cancel(work: Work, request: Request) -> ASGIApp:
    given = checked(api.RunRef, await _of_run(request))
    return _recorded(work, given.run_id, request, await work.app.runs.cancel(given.run_id))


async def run_approve(work: Work, request: Request) -> ASGIApp:
    given = checked(api.ApproveParams, await _of_run(request))
    await work.app.runs.approve(given.run_id, given.approval_id, given.decision, given.feedback, given.hunks)
    return _recorded(work, given.run_id, request)


async def run_answer(work: Work, request: Request) -> ASGIApp:
    given = checked(api.AnswerParams, await _of_run(request))
    await work.app.runs.answer(given.run_id, given.input_id, given.text)
    return _recorded(work, given.run_id, request)


async def run_steer(work: Work, request: Request) -> ASGIApp:
    given = checked(api.SteerParams, await _of_run(request))
    await work.app.runs.steer(given.run_id, given.text)
    return model_answer(request, None)


async def models(work: Work, request: Request) -> ASGIApp:
    return model_answer(request, await models_of(work.app, language(request.scope)))


async def tools(work: Work, request: Request) -> ASGIApp:
    return model_answer(request, tools_of(work.app))


async def agents(work: Work, request: Request) -> ASGIApp:
    return model_answer(request, agents_of(work.app))


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


def make_app(work: Work) -> Starlette:
    """The ASGI application, without the check of who asks."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for method, path, endpoint in ROUTES:
        by_path.setdefault(path, {})[method] = endpoint
    routes = [Route(path, _Place(work, ends), methods=[*ends]) for path, ends in by_path.items()]
    made = Starlette(
        routes=routes, exception_handlers={Exception: answer_failure, HTTPException: answer_failure}
    )
    made.router.redirect_slashes = False
    return made


@dataclass(frozen=True, slots=True)
class _Place:
    """What answers at one address, by method."""

    work: Work
    ends: dict[str, Endpoint]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        answer: ASGIApp
        try:
            answer = await self.ends["GET" if request.method == "HEAD" else request.method](
                self.work, request
            )
        except UsageError as wrong:
            if request.url.path.startswith("/v1/runs/") and wrong.failure.kind == "usage":
                answer = failure_answer(scope, 409, wrong.failure)  # it fits, but not how the run stands
            else:
                answer = await answer_failure(request, wrong)
        except (DaikuError, Refused, Unfit) as wrong:
            answer = await answer_failure(request, wrong)
        await answer(scope, receive, send)


def _id(request: Request) -> str:
    """The id in the address. Raises UsageError where it cannot be one."""
    given: str = request.path_params["id"]
    if not _ID.fullmatch(given):
        raise UsageError(Failure(kind="not_found", message=text("http.404")))
    return given


def _query(request: Request) -> JsonObject:
    return dict(request.query_params)


async def _of_run(request: Request) -> JsonObject:
    """The body of a request about a run. It may name the run too, the same one. Raises Unfit."""
    run, body = _id(request), await read_object(request, MAX_BODY)
    if body.setdefault("runId", run) != run:
        raise Unfit(["runId: not the run of the address"])
    return body


def _recorded(work: Work, run: str, request: Request, result: BaseModel | None = None) -> ASGIApp:
    """The answer to what may have been written to the journal beside a run: readers are shown it."""
    work.channels.look(work.app.journal.session_of_run(run))
    return model_answer(request, result)


def _stream(work: Work, shown: RunShown) -> EventStream:
    return EventStream(shown.reader, partial(work.leave, shown.reader), lambda: shown.result)
