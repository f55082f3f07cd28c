"""Requests that start a run: build the run request, collect its result, stream its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from daiku import api
from daiku.core.plans.transitions import find_step
from daiku.core.web.research import gather
from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import Edit, PlanEvent, ToolCallEvent, ToolResponse
from daiku.domain.runs import ClientApprovals, RunResult, is_success
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan
from daiku.domain.work.research import Research
from daiku.lsp.connection import ClientConnection
from daiku.lsp.requests.stream import ChunkStream, MessageBoxes, ProgressBar, fan_out
from daiku.lsp.wire.refused import invalid
from daiku.sdk.fronts import App, Listener, RunRequest, Runs, brief_from
from daiku.sdk.work_items import only_here
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.domain.playbook import Bullet
    from daiku.sdk.playbook.generator import KeptPlaybooks

RUN_EXACTLY = (
    "Run these commands in this order with shell__run, exactly as they are, and report what came of each:"
)


@dataclass(slots=True)
class RunCollector:
    """What a run did, as the results of `daiku/plan`, `daiku/research`, `daiku/code`, `daiku/run` tell it."""

    plan: Plan | None = None
    research: Research = Research()
    files: dict[str, FileStat] = field(default_factory=dict[str, FileStat])
    commands: list[api.CommandOutcome] = field(default_factory=list[api.CommandOutcome])
    _calls: dict[str, str] = field(default_factory=dict[str, str])

    def hear(self, chunk: Chunk) -> None:
        """Collect results from one chunk of the run."""
        self.research = gather(self.research, chunk.event)
        match chunk.event:
            case PlanEvent(plan=plan):
                self.plan = plan
            case Edit(files=files):
                for stat in files:
                    self.files[stat.path] = _together(self.files.get(stat.path), stat)
            case ToolCallEvent(id=call, tool="shell/run", args=args):
                self._calls[call] = str(args.get("command", ""))
            case ToolResponse(id=call, tool="shell/run") as answer if call in self._calls:
                self.commands.append(_outcome(self._calls[call], answer))
            case _:
                pass


async def chat(c: ClientConnection, p: api.ChatParams) -> RunResult:
    request = RunRequest(
        p.text, context=p.context, images=p.images, mode=p.mode or "act", grant=p.grant, cursor=p.cursor
    )
    return await start(c, p, request)


async def plan(c: ClientConnection, p: api.PlanParams) -> RunResult:
    gathered = RunCollector()
    request = RunRequest(p.goal, context=p.context, agent="planner", mode="plan")
    result = await start(c, p, request, gathered.hear)
    fields = dict(result)
    fields["plan"] = gathered.plan
    return api.PlanResult(**fields)


async def research(c: ClientConnection, p: api.ResearchParams) -> RunResult:
    if not (p.plan_id or p.question):
        raise invalid(["question: give a question or a planId"])
    brief, session = await _brief(c, p, p.question or "", p.plan_id)
    gathered = RunCollector()
    text = p.question or f"Research for {brief.plan.name if brief.plan is not None else 'the plan'}"
    request = RunRequest(text, session=session, agent="researcher", mode="ask", brief=brief)
    result = await start(c, p, request, gathered.hear)
    return api.ResearchResult(**dict(result), **dict(gathered.research))


async def code(c: ClientConnection, p: api.CodeParams) -> RunResult:
    if not (p.instruction or p.plan_id or p.step_id):
        raise invalid(["instruction: give an instruction, a planId or a stepId"])
    brief, session = await _brief(c, p, p.instruction or "", p.plan_id, p.step_id)
    gathered = RunCollector()
    request = RunRequest(brief.request, session=session, agent="coder", context=p.context, brief=brief)
    result = await start(c, p, request, gathered.hear)
    return api.CodeResult(**dict(result), files=tuple(gathered.files.values()))


async def commands(c: ClientConnection, p: api.CommandsParams) -> RunResult:
    if not (p.instruction or p.commands or p.plan_id or p.step_id):
        raise invalid(["instruction: give an instruction, commands, a planId or a stepId"])
    lines = "\n".join(f"```sh\n{command}\n```" for command in p.commands)
    gathered = RunCollector()
    if p.instruction or not p.commands:
        text = f"{p.instruction or ''}\n\n{RUN_EXACTLY}\n{lines}".strip() if lines else p.instruction or ""
        brief, session = await _brief(c, p, text, p.plan_id, p.step_id)
        request = RunRequest(brief.request, session=session, agent="runner", brief=brief)
    else:
        calls = tuple(ToolCall(tool="shell/run", args={"command": command}) for command in p.commands)
        request = RunRequest(lines, agent="runner", calls=calls)
    result = await start(c, p, request, gathered.hear)
    left = () if p.instruction else p.commands[len(gathered.commands) :]
    return api.CommandsResult(**dict(result), commands=tuple(gathered.commands), not_run=left)


async def generate(c: ClientConnection, p: api.GenerateParams) -> str:
    """The Trajectory, whatever came of it; as JSON, for here what is null is said too."""
    from daiku.sdk.playbook.generator import generators_of, kept_playbooks  # when used

    app = await c.app()
    kept = kept_playbooks(app)
    agent = generators_of(app, kept, c.protocol.language).generator_agent(_GeneratorRun(kept, c, p))
    made = await agent.arun(p.query, p.dataset)
    return api.GenerateResult(
        query=made.query,
        dataset=made.dataset,
        generated_answer=made.generated_answer,
        reasoning_steps=tuple(made.reasoning_steps),
        used_bullet_ids=tuple(made.used_bullet_ids),
        status=made.status,
        error_message=made.error_message,
        created_at=made.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    ).model_dump_json(by_alias=True)


@dataclass(frozen=True, slots=True)
class _GeneratorRun:
    """Asks the model by a run of the agent `generator`, which is streamed and can be cancelled as any other."""

    kept: KeptPlaybooks
    connection: ClientConnection
    params: api.GenerateParams

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        """What the run said. Raises DaikuError where it did not complete."""
        request = RunRequest(
            self.params.query,
            agent="generator",
            mode="ask",
            told=prompt,
            lessons=self.kept.lessons(retrieved),
        )
        result = await start(self.connection, self.params, request)
        if result.error is not None:
            raise DaikuError(result.error)
        if not is_success(result.status):
            message = text("generate.not_completed", status=result.status)
            raise DaikuError(Failure(kind="limit", message=message))
        return result.text


async def _brief(
    c: ClientConnection, p: api.RunStart, request: str, plan_id: str | None, step_id: str | None = None
) -> tuple[Brief, str | None]:
    """What a single stage is given, and the session that it belongs in: that of its plan, where none is
    named. Raises UsageError: no such plan or step."""
    journal = (await c.app()).journal
    session = p.session_id
    if session is None and plan_id:
        session = journal.session_of_plan(plan_id)[0]
    if session is None:
        if step_id:
            raise invalid(["stepId: name its planId or its sessionId too"])
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
    only_here(app, app.journal.session_of_run(p.run_id), c.workspace_key)
    return await show(c, p, lambda runs, listen: runs.resume(p.run_id, listen, approvals))


async def start(
    c: ClientConnection, p: api.RunStart, request: RunRequest, hear: Listener | None = None
) -> RunResult:
    """Run `request` with what every start may carry, shown as the client wants it."""
    session = p.session_id or request.session
    if session is not None:
        only_here(await c.app(), session, c.workspace_key)
    whole = replace(
        request, session=session, model=p.model or "", limits=p.limits, approvals=p.approvals or "ask"
    )
    return await show(c, p, lambda runs, listen: runs.run(whole, listen), hear)


async def show(
    c: ClientConnection,
    p: api.RunStart | api.ResumeParams,
    work: Callable[[Runs, Listener], Awaitable[RunResult]],
    hear: Listener | None = None,
) -> RunResult:
    """Run `work`, stream its chunks and progress, and show message boxes if the client cannot ask.
    The client gets its own language; `hear` gets the chunks as they are on record."""
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
        listeners.append(_Cancels(c, app, p.work_done_token).hear)
        bar.begin("Daiku")
    status = "failed"
    try:
        tell, language = fan_out(*listeners), c.protocol.language

        def shown(chunk: Chunk) -> None:
            tell(chunk.in_language(language))

        result = await work(app.runs, fan_out(hear, shown) if hear else shown)
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


class _Cancels:
    """Lets the progress bar's stop button cancel the run, as soon as the run is known."""

    def __init__(self, c: ClientConnection, app: App, token: int | str) -> None:
        self._c = c
        self._app = app
        self._token = token

    def hear(self, chunk: Chunk) -> None:
        if self._token not in self._c.cancels and chunk.parent is None:
            run = chunk.run
            self._c.cancels[self._token] = lambda: self._c.background(self._cancel(run))

    async def _cancel(self, run: str) -> None:
        await self._app.runs.cancel(run)


def _together(before: FileStat | None, now: FileStat) -> FileStat:
    if before is None:
        return now
    kind = "create" if before.kind == "create" and now.kind == "edit" else now.kind
    return now.model_copy(
        update={"kind": kind, "added": before.added + now.added, "removed": before.removed + now.removed}
    )


def _outcome(command: str, answer: ToolResponse) -> api.CommandOutcome:
    """A command that was refused or never started has no exit code of its own: it counts as failed."""
    data = answer.data or {}
    code = data.get("exit_code", data.get("exitCode"))
    exit_code = code if isinstance(code, int) else 0 if answer.ok else 1
    output = data.get("output")
    return api.CommandOutcome(
        command=command,
        exit_code=exit_code,
        output=output if isinstance(output, str) else answer.result,
        call_id=answer.id,
    )
