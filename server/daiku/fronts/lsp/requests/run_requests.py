"""Requests that start a run: build the run request, collect its result, stream its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from daiku import api
from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.runs import ClientApprovals, RunResult, is_success
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief
from daiku.domain.work.patches import PatchJSON, RangeEdit
from daiku.domain.work.plans import Plan, in_full
from daiku.edits.rules.changes.changemap import apply_map, range_edits, unredact
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.positions import Encoding
from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.requests.stream import ChunkStream, MessageBoxes, ProgressBar, fan_out
from daiku.fronts.lsp.wire.refused import invalid_params
from daiku.guard.rules.redact import MARK
from daiku.items.listing import require_local_files
from daiku.library.fronts import Listener, RunRequest, Runs, brief_from, document_request
from daiku.library.plans.managing import work_request
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.state import State
from daiku.team.rules.drafting.moves import find_document
from daiku.team.rules.drafting.progress import find_progress, merge_work
from daiku.team.rules.moves import find_team_plan
from daiku.team.rules.plans.markdown import read_plan_text, to_markdown
from daiku.team.rules.plans.transitions import find_step
from daiku.team.rules.report import build_final_report
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.domain.playbook import Bullet
    from daiku.playbook.generators import GeneratorPlaybooks


RUN_EXACTLY = (
    "Run these commands in this order with shell__run, exactly as they are, and report what came of each:"
)


@dataclass(slots=True)
class RunFold:
    """State of a run, folded from its chunks, including nested runs."""

    state: State = field(default_factory=State)

    def hear(self, chunk: Chunk) -> None:
        """Apply one chunk of the run."""
        if chunk.parent is None:
            self.state = apply(self.state, chunk.event)

    def changed_plan(self) -> Plan | None:
        """Return the plan that the run changed last, or None."""
        plans = self.state.plans
        return next((plan for plan in plans.all if plan.plan_id == plans.last), None)


async def chat(c: ClientConnection, p: api.ChatParams) -> RunResult:
    request = RunRequest(
        p.text, context=p.context, images=p.images, mode=p.mode or "act", grant=p.grant, cursor=p.cursor
    )
    return await start_run(c, p, request)


async def plan(c: ClientConnection, p: api.PlanParams) -> RunResult:
    fold = RunFold()
    request = RunRequest(p.goal, context=p.context, agent="planner", mode="plan")
    result = await start_run(c, p, request, fold.hear)
    fields = dict(result)
    fields["plan"] = fold.changed_plan()
    return api.PlanResult(**fields)


async def research(c: ClientConnection, p: api.ResearchParams) -> RunResult:
    if not (p.plan_id or p.question):
        raise invalid_params(["question: give a question or a planId"])
    brief, session = await _brief(c, p, p.question or "", p.plan_id)
    fold = RunFold()
    text = p.question or f"Research for {brief.plan.name if brief.plan is not None else 'the plan'}"
    request = RunRequest(text, session=session, agent="researcher", mode="ask", brief=brief)
    result = await start_run(c, p, request, fold.hear)
    return api.ResearchResult(**dict(result), **dict(fold.state.research))


async def code(c: ClientConnection, p: api.CodeParams) -> RunResult:
    if not (p.instruction or p.plan_id or p.step_id):
        raise invalid_params(["instruction: give an instruction, a planId or a stepId"])
    brief, session = await _brief(c, p, p.instruction or "", p.plan_id, p.step_id)
    fold = RunFold()
    request = RunRequest(brief.request, session=session, agent="coder", context=p.context, brief=brief)
    result = await start_run(c, p, request, fold.hear)
    return api.CodeResult(**dict(result), files=fold.state.done.files)


async def commands(c: ClientConnection, p: api.CommandsParams) -> RunResult:
    if not (p.instruction or p.commands or p.plan_id or p.step_id):
        raise invalid_params(["instruction: give an instruction, commands, a planId or a stepId"])
    lines = "\n".join(f"```sh\n{command}\n```" for command in p.commands)
    fold = RunFold()
    if p.instruction or not p.commands:
        text = f"{p.instruction or ''}\n\n{RUN_EXACTLY}\n{lines}".strip() if lines else p.instruction or ""
        brief, session = await _brief(c, p, text, p.plan_id, p.step_id)
        request = RunRequest(brief.request, session=session, agent="runner", brief=brief)
    else:
        calls = tuple(ToolCall(tool="shell/run", args={"command": command}) for command in p.commands)
        request = RunRequest(lines, agent="runner", calls=calls)
    result = await start_run(c, p, request, fold.hear)
    done = fold.state.done.commands
    not_run = () if p.instruction else p.commands[len(done) :]
    return api.CommandsResult(**dict(result), commands=done, not_run=not_run)


async def plan_run(c: ClientConnection, p: api.PlanRunParams) -> RunResult:
    """Let the team run a plan; the request implies its approval."""
    app = await c.app()
    plan = app.journal.get_plan(p.plan_id)
    if p.step_id and all(step.step_id != p.step_id for step in plan.steps):
        raise invalid_params([f"stepId: the plan has no step {p.step_id!r}"])
    request = await work_request(app, plan, p.step_id or "")
    fold = RunFold()
    result = await start_run(c, p, request, fold.hear)
    final_plan = find_team_plan(fold.state) or app.journal.get_plan(plan.plan_id)
    fields = dict(result)
    fields["plan"] = in_full(final_plan)
    return api.PlanRunResult(**fields, report=build_final_report(fold.state, final_plan))


async def plan_import(c: ClientConnection, p: api.PlanImportParams) -> Plan:
    """Create a plan from a checklist or another plan format."""
    return await (await c.app()).runs.keep_plan(read_plan_text(p.markdown), p.session_id)


async def plan_export(c: ClientConnection, p: api.PlanRef) -> api.TextResult:
    """Return the plan as a checklist that can be imported again."""
    return api.TextResult(text=to_markdown((await c.app()).journal.get_plan(p.plan_id)))


async def document(c: ClientConnection, p: api.DocumentParams) -> RunResult:
    """Revise a document.

    The patch is against the text at the time of the request, whatever the user accepted of it; `edits` are
    the same changes by line and character.
    """
    app = await c.app()
    encoding = c.documents.encoding
    depth = 1 if p.depth is None else p.depth
    request = await document_request(
        app.workspace,
        p.uri,
        p.instruction,
        depth=depth,
        selection=p.range,
        encoding=encoding,
        trusted=app.runs.services.trusted,
    )
    brief_document = request.brief.document if request.brief is not None else None
    old = brief_document.text if brief_document is not None else ""
    fold = RunFold()
    result = await start_run(c, p, request, fold.hear)
    patch = revised_patch(fold.state, old)
    return api.DocumentResult(**dict(result), patch=patch, edits=_edits(old, patch, encoding))


def _edits(old: str, patch: PatchJSON | None, encoding: Encoding) -> tuple[RangeEdit, ...]:
    try:
        return () if patch is None else range_edits(old, patch.change_map, encoding)
    except ValueError:  # an unpaired surrogate, which no editor accepts
        return ()


def revised_patch(state: State, old: str) -> PatchJSON | None:
    """Return the run's patch of `old`, the document as it was read; None if there is none or a guard blocked it."""
    document = find_document(state)
    blocked = state.failure is not None and state.failure.kind == "guardrail"
    if document is None or blocked:
        return None
    merged = merge_work(find_progress(state, document)).patch
    changes = unredact(old, document.text, MARK, merged.change_map)
    if isinstance(changes, Refusal) or not changes:
        return None
    new = apply_map(old, changes)
    return None if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=changes)


async def generate(c: ClientConnection, p: api.GenerateParams) -> str:
    """Return the Trajectory as JSON, with its null fields."""
    from daiku.playbook.generators import build_generators, get_playbooks  # when used

    app = await c.app()
    playbooks = get_playbooks(app.runs.services)
    agent = build_generators(app.runs.services, playbooks, c.protocol.language).generator_agent(
        _GeneratorRun(playbooks, c, p)
    )
    trajectory = await agent.arun(p.query, p.dataset)
    return api.GenerateResult(
        query=trajectory.query,
        dataset=trajectory.dataset,
        generated_answer=trajectory.generated_answer,
        reasoning_steps=tuple(trajectory.reasoning_steps),
        used_bullet_ids=tuple(trajectory.used_bullet_ids),
        status=trajectory.status,
        error_message=trajectory.error_message,
        created_at=trajectory.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    ).model_dump_json(by_alias=True)


@dataclass(frozen=True, slots=True)
class _GeneratorRun:
    """Calls the model with a run of the agent `generator`, which streams and can be cancelled."""

    kept: GeneratorPlaybooks
    connection: ClientConnection
    params: api.GenerateParams

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        """Return the run's answer. Raises DaikuError if it did not complete."""
        request = RunRequest(
            self.params.query,
            agent="generator",
            mode="ask",
            told=prompt,
            lessons=self.kept.lessons(retrieved),
        )
        result = await start_run(self.connection, self.params, request)
        if result.error is not None:
            raise DaikuError(result.error)
        if not is_success(result.status):
            message = text("generate.not_completed", status=result.status)
            raise DaikuError(Failure(kind="limit", message=message))
        return result.text


async def _brief(
    c: ClientConnection, p: api.RunStart, request: str, plan_id: str | None, step_id: str | None = None
) -> tuple[Brief, str | None]:
    """Return the brief of a single stage, and its session: the named one, else that of its plan.

    Raises UsageError.
    """
    journal = (await c.app()).journal
    session = p.session_id
    if session is None and plan_id:
        session = journal.session_of_plan(plan_id)[0]
    if session is None:
        if step_id:
            raise invalid_params(["stepId: name its planId or its sessionId too"])
        return Brief(request=request), None
    journal.get_session(session)
    brief = brief_from(journal.chunks(session), request, plan_id or "", step_id or "")
    if not request and brief.plan is not None:
        step = find_step(brief.plan, brief.step_id) if brief.step_id else None
        what = f"Carry out “{step.name}” of the plan “{brief.plan.name}”." if step else ""
        brief = brief.model_copy(update={"request": what or f"Carry out the plan “{brief.plan.name}”."})
    return brief, session


async def resume(c: ClientConnection, p: api.ResumeParams) -> RunResult:
    approvals: ClientApprovals = p.approvals or "ask"
    app = await c.app()
    require_local_files(app, app.journal.session_of_run(p.run_id), c.workspace_key)
    return await stream_run(c, p, lambda runs, listen: runs.resume(p.run_id, listen, approvals))


async def start_run(
    c: ClientConnection, p: api.RunStart, request: RunRequest, hear: Listener | None = None
) -> RunResult:
    """Run `request` with the common params of a start, and stream it as the client requested."""
    session = p.session_id or request.session
    if session is not None:
        require_local_files(await c.app(), session, c.workspace_key)
    full_request = replace(
        request, session=session, model=p.model or "", limits=p.limits, approvals=p.approvals or "ask"
    )
    return await stream_run(c, p, lambda runs, listen: runs.run(full_request, listen), hear)


async def stream_run(
    c: ClientConnection,
    p: api.RunStart | api.ResumeParams,
    work: Callable[[Runs, Listener], Awaitable[RunResult]],
    hear: Listener | None = None,
) -> RunResult:
    """Run `work`, stream its chunks and progress, and show message boxes if the client cannot ask.

    The client gets its own language; `hear` gets the chunks as recorded.
    """
    app = await c.app()
    listeners: list[Listener] = []
    stream = boxes = bar = None
    if p.partial_result_token is not None and c.protocol.outlet is not None:
        stream = ChunkStream(c.protocol.outlet, p.partial_result_token)
        listeners.append(stream.send)
    if not c.offer.approvals:
        boxes = MessageBoxes(c.protocol, app.runs, c.protocol.language)
        listeners.append(boxes.hear)
    if p.work_done_token is not None:
        bar = ProgressBar(c.protocol, p.work_done_token, c.protocol.language)
        listeners.append(lambda chunk: bar.show(chunk.event))
        listeners.append(_cancel_by_button(c, app.runs, p.work_done_token))
        bar.begin("Daiku")
    status = "failed"
    try:
        tell, language = fan_out(*listeners), c.protocol.language

        def localize_and_tell(chunk: Chunk) -> None:
            tell(chunk.in_language(language))

        result = await work(app.runs, fan_out(hear, localize_and_tell) if hear else localize_and_tell)
        status = result.status
        return result
    except asyncio.CancelledError:
        status = "cancelled"
        raise
    finally:
        if p.work_done_token is not None:
            c.cancels.pop(p.work_done_token, None)
        if boxes is not None:
            boxes.close()
        if stream is not None:
            stream.flush()
        if bar is not None:
            bar.end(status)


def _cancel_by_button(c: ClientConnection, runs: Runs, token: int | str) -> Listener:
    """Return a listener that connects the progress bar's cancel button to the run once it is known."""

    async def cancel(run: str) -> None:
        await runs.cancel(run)

    def hear(chunk: Chunk) -> None:
        if token not in c.cancels and chunk.parent is None:
            c.cancels[token] = lambda: c.background(cancel(chunk.run))

    return hear
