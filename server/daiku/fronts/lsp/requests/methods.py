"""The custom methods, and their table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel

from daiku import api
from daiku.dataclass import dataclass
from daiku.domain.base import Localizable, Wire
from daiku.domain.chunks import Chunk, iso_now
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import CheckpointEvent
from daiku.domain.items.item import WorkItem
from daiku.domain.runs import RunResult
from daiku.domain.sessions import Session
from daiku.domain.work.plans import Plan
from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.initialize import Json
from daiku.fronts.lsp.requests.commands import run_diagnostics
from daiku.fronts.lsp.requests.playbook import (
    playbook_add,
    playbook_deltas,
    playbook_list,
    playbook_remove,
    playbook_review,
    playbook_search,
    playbook_show,
    playbook_update,
    playbook_watch,
    work_ask,
    work_list,
    work_show,
    work_take_over,
    work_watch,
)
from daiku.fronts.lsp.requests.run_requests import (
    chat,
    code,
    commands,
    document,
    generate,
    plan,
    plan_export,
    plan_import,
    plan_run,
    research,
    resume,
)
from daiku.fronts.lsp.wire.jsontext import model_json
from daiku.fronts.lsp.wire.protocol import Handler
from daiku.fronts.lsp.wire.refused import invalid_params
from daiku.items.listing import require_local_files
from daiku.library.fronts import App, list_changed_everywhere, list_changed_files, to_restore_result
from daiku.library.offers import agents_of, delete_session, models_of, tools_of
from daiku.library.plans.managing import InvalidPlan, approve_draft, save_plan
from daiku.texts.text import text
from daiku.trace.grants import SERVER, all_answers, revoke_answer
from daiku.trace.rules.lines import milliseconds_between
from daiku.trace.rules.spans import Span, session_spans
from daiku.trace.transcript import export


@dataclass(frozen=True, slots=True)
class Method:
    """A custom method: the types of its params and result (None: `null`), and its function."""

    params: type[Wire]
    result: type[Wire] | None
    answer: Callable[[ClientConnection, Any], Awaitable[BaseModel | str | None]]
    """Takes the validated params; a returned `str` is JSON text."""


async def pause(c: ClientConnection, p: api.RunRef) -> BaseModel:
    return await (await c.app()).runs.pause(p.run_id)


async def cancel(c: ClientConnection, p: api.RunRef) -> BaseModel:
    return await (await c.app()).runs.cancel(p.run_id)


async def steer(c: ClientConnection, p: api.SteerParams) -> None:
    await (await c.app()).runs.steer(p.run_id, p.text)


async def approve(c: ClientConnection, p: api.ApproveParams) -> None:
    await (await c.app()).runs.approve(p.run_id, p.approval_id, p.decision, p.feedback, p.hunks)


async def answer(c: ClientConnection, p: api.AnswerParams) -> None:
    await (await c.app()).runs.answer(p.run_id, p.input_id, p.text)


async def session_new(c: ClientConnection, p: api.SessionNewParams) -> BaseModel:
    app = await c.app()
    return app.journal.new_session(p.title or "", c.workspace_key)


async def session_list(c: ClientConnection, p: api.SessionListParams) -> BaseModel:
    sessions = (await c.app()).journal.list_sessions(p.query or "", p.limit, c.workspace_key)
    return api.SessionListResult(sessions=tuple(sessions))


async def session_get(c: ClientConnection, p: api.SessionGetParams) -> str:
    journal = (await c.app()).journal
    session = journal.get_session(p.session_id)

    def line(chunk: Chunk) -> str:
        return chunk.in_language(c.protocol.language).json()

    if p.last is None:
        chunks = ",".join(line(chunk) for chunk in journal.chunks(p.session_id, p.after_seq))
        return f'{{"session":{model_json(session)},"chunks":[{chunks}]}}'
    recent, window = journal.window(p.session_id, before_seq=p.before_seq or 0, last=p.last)
    chunks = ",".join(line(chunk) for chunk in recent)
    earlier = api.EarlierChunks(before_seq=window.first_seq, count=window.earlier, usage=window.usage)
    earlier_json = f',"earlier":{model_json(earlier)}' if window.earlier else ""
    return f'{{"session":{model_json(session)},"chunks":[{chunks}]{earlier_json}}}'


async def session_delete(c: ClientConnection, p: api.SessionRef) -> None:
    await delete_session(await c.app(), p.session_id)


async def session_fork(c: ClientConnection, p: api.SessionForkParams) -> BaseModel:
    app = await c.app()
    require_local_files(app, p.session_id, c.workspace_key)
    return await app.reviews.fork(p.session_id, p.at_seq, restore_files=p.restore_files)


async def session_export(c: ClientConnection, p: api.SessionExportParams) -> BaseModel:
    journal = (await c.app()).journal
    session = journal.get_session(p.session_id)
    return api.TextResult(text=export(session, journal.chunks(p.session_id), p.format, c.protocol.language))


async def plan_get(c: ClientConnection, p: api.PlanRef) -> BaseModel:
    return (await c.app()).journal.get_plan(p.plan_id)


async def plan_update(c: ClientConnection, p: api.PlanUpdateParams) -> BaseModel:
    """Save the user's changes to a plan. Raises RpcError with the problems if the plan is invalid."""
    app = await c.app()
    before = app.journal.get_plan(p.plan_id)
    changes = {name: getattr(p, name) for name in p.model_fields_set - {"plan_id"}}
    changes = {name: value for name, value in changes.items() if value is not None}
    try:
        return await save_plan(app, before, before.model_copy(update=changes))
    except InvalidPlan as error:
        raise invalid_params(error.problems) from error


async def plan_approve(c: ClientConnection, p: api.PlanRef) -> BaseModel:
    """Approve a draft and return the plan; other plans are returned unchanged."""
    app = await c.app()
    return await approve_draft(app, app.journal.get_plan(p.plan_id))


async def checkpoint_list(c: ClientConnection, p: api.SessionRef) -> BaseModel:
    app = await c.app()
    chunks = app.journal.chunks(p.session_id)
    return api.CheckpointListResult(
        checkpoints=tuple(
            api.CheckpointInfo(
                checkpoint_id=chunk.event.checkpoint_id,
                session_id=chunk.session,
                run_id=chunk.run,
                seq=chunk.seq,
                time=chunk.time,
                files=chunk.event.files,
            )
            for chunk in chunks
            if isinstance(chunk.event, CheckpointEvent) and app.checkpoints.get(chunk.event.checkpoint_id)
        )
    )


async def trace_get(c: ClientConnection, p: api.SessionRef) -> api.TraceResult:
    """Return the spans and usage of a session, from the journal alone."""
    journal = (await c.app()).journal
    session = journal.get_session(p.session_id)
    return await asyncio.to_thread(_build_trace, session, journal.chunks(p.session_id))


def _build_trace(session: Session, chunks: Sequence[Chunk]) -> api.TraceResult:
    spans = session_spans(chunks)
    running = session.status in ("running", "waiting")
    until = iso_now() if running else max((span.end or span.start for span in spans), default="")
    return api.TraceResult(
        session=session, spans=tuple(_to_wire_span(span, running) for span in spans), until=until
    )


def _to_wire_span(span: Span, running: bool) -> api.TraceSpan:
    """Convert a span. A running span without a process was interrupted."""
    was_interrupted = span.status == "running" and not running
    return api.TraceSpan(
        key=span.key,
        parent=span.parent,
        kind=span.kind,
        name={"agent": span.agent, "chat": span.answered_by or span.model, "tool": span.tool}[span.kind],
        run=span.run,
        call_id=span.call_id,
        seq=span.seq,
        start=span.start,
        duration_ms=None if span.end is None else milliseconds_between(span.start, span.end),
        status="cancelled" if was_interrupted else span.status,
        error="interrupted" if was_interrupted else span.error,
        usage=span.tokens,
        retries=span.retries,
    )


async def grants_list(c: ClientConnection, _: api.Nothing) -> api.GrantsResult:
    return _list_grants(c, await c.app())


async def grants_revoke(c: ClientConnection, p: api.GrantRef) -> api.GrantsResult:
    app = await c.app()
    if not revoke_answer(app.grants, app.consents, c.workspace_key, p.key):
        raise UsageError(Failure(kind="not_found", message=text("editor.not_remembered")))
    if p.key.startswith(SERVER):
        app.servers.forget(p.key.removeprefix(SERVER))
    return _list_grants(c, app)


def _list_grants(c: ClientConnection, app: App) -> api.GrantsResult:
    answers = all_answers(app.grants, app.consents, c.workspace_key)
    return api.GrantsResult(
        grants=tuple(api.Grant(key=saved.key, answer=saved.answer, what=saved.what) for saved in answers),
        workspace=c.workspace_key,
    )


async def changes_list(c: ClientConnection, p: api.ChangesParams) -> BaseModel:
    if p.session_id is not None:
        return await _list_changes(c, p.session_id)
    return api.ChangesResult(files=list_changed_everywhere(await (await c.app()).reviews.everywhere()))


async def changes_decide(c: ClientConnection, p: api.DecideParams) -> BaseModel:
    app = await c.app()
    require_local_files(app, p.session_id, c.workspace_key)
    reviews = app.reviews
    checkpoint = await reviews.decide(p.session_id, p.decision, p.path, p.hunk_ids)
    return await _list_changes(c, p.session_id, checkpoint if p.decision == "reject" else None)


async def changes_original(c: ClientConnection, p: api.OriginalParams) -> BaseModel:
    return api.OriginalResult(text=await (await c.app()).reviews.original(p.session_id, p.path))


async def checkpoint_restore(c: ClientConnection, p: api.CheckpointRef) -> BaseModel:
    app = await c.app()
    require_local_files(app, app.checkpoints.require(p.checkpoint_id).session, c.workspace_key)
    return to_restore_result(await app.reviews.restore(p.checkpoint_id))


async def _list_changes(
    c: ClientConnection, session: str, checkpoint: str | None = None
) -> api.ChangesResult:
    reviews = await (await c.app()).reviews.changes(session)
    return api.ChangesResult(files=list_changed_files(reviews, session), checkpoint_id=checkpoint)


async def models(c: ClientConnection, _: api.Nothing) -> BaseModel:
    return await models_of(await c.app(), c.protocol.language)


async def tools(c: ClientConnection, _: api.Nothing) -> BaseModel:
    return tools_of(await c.app())


async def agents(c: ClientConnection, _: api.Nothing) -> BaseModel:
    return agents_of(await c.app())


METHODS: dict[str, Method] = {
    "daiku/chat": Method(api.ChatParams, RunResult, chat),
    "daiku/plan": Method(api.PlanParams, api.PlanResult, plan),
    "daiku/research": Method(api.ResearchParams, api.ResearchResult, research),
    "daiku/code": Method(api.CodeParams, api.CodeResult, code),
    "daiku/run": Method(api.CommandsParams, api.CommandsResult, commands),
    "daiku/document": Method(api.DocumentParams, api.DocumentResult, document),
    "daiku/generate": Method(api.GenerateParams, api.GenerateResult, generate),
    "daiku/resume": Method(api.ResumeParams, RunResult, resume),
    "daiku/pause": Method(api.RunRef, RunResult, pause),
    "daiku/cancel": Method(api.RunRef, RunResult, cancel),
    "daiku/steer": Method(api.SteerParams, None, steer),
    "daiku/approve": Method(api.ApproveParams, None, approve),
    "daiku/answer": Method(api.AnswerParams, None, answer),
    "daiku/session/new": Method(api.SessionNewParams, Session, session_new),
    "daiku/session/list": Method(api.SessionListParams, api.SessionListResult, session_list),
    "daiku/session/get": Method(api.SessionGetParams, api.SessionGetResult, session_get),
    "daiku/session/delete": Method(api.SessionRef, None, session_delete),
    "daiku/session/fork": Method(api.SessionForkParams, Session, session_fork),
    "daiku/session/export": Method(api.SessionExportParams, api.TextResult, session_export),
    "daiku/plan/get": Method(api.PlanRef, Plan, plan_get),
    "daiku/plan/update": Method(api.PlanUpdateParams, Plan, plan_update),
    "daiku/plan/approve": Method(api.PlanRef, Plan, plan_approve),
    "daiku/plan/run": Method(api.PlanRunParams, api.PlanRunResult, plan_run),
    "daiku/plan/import": Method(api.PlanImportParams, Plan, plan_import),
    "daiku/plan/export": Method(api.PlanRef, api.TextResult, plan_export),
    "daiku/checkpoint/list": Method(api.SessionRef, api.CheckpointListResult, checkpoint_list),
    "daiku/checkpoint/restore": Method(api.CheckpointRef, api.RestoreResult, checkpoint_restore),
    "daiku/changes/list": Method(api.ChangesParams, api.ChangesResult, changes_list),
    "daiku/changes/decide": Method(api.DecideParams, api.ChangesResult, changes_decide),
    "daiku/changes/original": Method(api.OriginalParams, api.OriginalResult, changes_original),
    "daiku/trace/get": Method(api.SessionRef, api.TraceResult, trace_get),
    "daiku/grants/list": Method(api.Nothing, api.GrantsResult, grants_list),
    "daiku/grants/revoke": Method(api.GrantRef, api.GrantsResult, grants_revoke),
    "daiku/work/list": Method(api.WorkListParams, api.WorkListResult, work_list),
    "daiku/work/watch": Method(api.WorkWatchParams, api.WorkWatchResult, work_watch),
    "daiku/work/show": Method(api.WorkItemRef, WorkItem, work_show),
    "daiku/work/pause": Method(api.WorkItemRef, WorkItem, work_ask("pause")),
    "daiku/work/resume": Method(api.WorkItemRef, WorkItem, work_ask("resume")),
    "daiku/work/cancel": Method(api.WorkItemRef, WorkItem, work_ask("cancel")),
    "daiku/work/retry": Method(api.WorkItemRef, WorkItem, work_ask("retry")),
    "daiku/work/takeOver": Method(api.WorkItemRef, api.WorkPlace, work_take_over),
    "daiku/playbook/list": Method(api.PlaybookListParams, api.PlaybookListResult, playbook_list),
    "daiku/playbook/search": Method(api.PlaybookSearchParams, api.PlaybookSearchResult, playbook_search),
    "daiku/playbook/show": Method(api.PlaybookRef, api.PlaybookShowResult, playbook_show),
    "daiku/playbook/add": Method(api.PlaybookAddParams, api.PlaybookChange, playbook_add),
    "daiku/playbook/update": Method(api.PlaybookUpdateParams, api.PlaybookChange, playbook_update),
    "daiku/playbook/remove": Method(api.PlaybookRef, api.PlaybookChange, playbook_remove),
    "daiku/playbook/deltas": Method(api.PlaybookDeltasParams, api.PlaybookDeltasResult, playbook_deltas),
    "daiku/playbook/review": Method(api.PlaybookReviewParams, api.PlaybookReviewResult, playbook_review),
    "daiku/playbook/watch": Method(api.PlaybookWatchParams, api.PlaybookWatchResult, playbook_watch),
    "daiku/models": Method(api.Nothing, api.ModelsResult, models),
    "daiku/tools": Method(api.Nothing, api.ToolsResult, tools),
    "daiku/doctor": Method(api.Nothing, api.DoctorResult, run_diagnostics),
    "daiku/agents": Method(api.Nothing, api.AgentsResult, agents),
}
"""Every method that a client may call: params, result (None is `null`), and function."""


def localize_result(c: ClientConnection, result: BaseModel | None) -> BaseModel | None:
    """Translate a result into the client's language."""
    return result.in_language(c.protocol.language) if isinstance(result, Localizable) else result


def handler(connection: ClientConnection, name: str) -> Handler:
    """Return the handler of method `name`: it validates params and returns the result as JSON text."""
    method = METHODS[name]

    async def handle(params: Json) -> str:
        validated = method.params.model_validate({} if params is None else params)
        result = await method.answer(connection, validated)
        return result if isinstance(result, str) else model_json(localize_result(connection, result))

    return handle
