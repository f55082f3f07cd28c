"""Plan requests: run a plan with the team, import a plan from text, export it as text."""

from __future__ import annotations

from pydantic import BaseModel

from daiku import api
from daiku.core.plans.markdown import read_plan_text, to_markdown
from daiku.core.state.fold import apply
from daiku.core.state.state import State
from daiku.core.team.moves import plan_of
from daiku.core.team.report import final_report
from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.runs import RunResult
from daiku.domain.work.plans import in_full
from daiku.lsp.connection import ClientConnection
from daiku.lsp.requests.run_requests import start
from daiku.lsp.wire.refused import invalid
from daiku.sdk.plans.managing import work_request


@dataclass(slots=True)
class TeamRunListener:
    """The team's own run, folded from its chunks."""

    run: str = ""
    state: State = field(default_factory=State)

    def hear(self, chunk: Chunk) -> None:
        """Fold one chunk of the team's run into its state."""
        if chunk.parent is None:
            self.run = self.run or chunk.run
            self.state = apply(self.state, chunk.event)


async def plan_run(c: ClientConnection, p: api.PlanRunParams) -> RunResult:
    """Let the team work a plan. Whoever asks for it approves of it."""
    app = await c.app()
    plan = app.journal.get_plan(p.plan_id)
    if p.step_id and all(step.step_id != p.step_id for step in plan.steps):
        raise invalid([f"stepId: the plan has no step {p.step_id!r}"])
    request = await work_request(app, plan, p.step_id or "")
    followed = TeamRunListener()
    result = await start(c, p, request, followed.hear)
    now = plan_of(followed.state) or app.journal.get_plan(plan.plan_id)
    fields = dict(result)
    fields["plan"] = in_full(now)
    return api.PlanRunResult(**fields, report=final_report(followed.state, now))


async def plan_import(c: ClientConnection, p: api.PlanImportParams) -> BaseModel:
    """A plan from a checklist or another form of a plan."""
    return await (await c.app()).runs.keep_plan(read_plan_text(p.markdown), p.session_id)


async def plan_export(c: ClientConnection, p: api.PlanRef) -> BaseModel:
    """The plan as a checklist that can be read in again."""
    return api.TextResult(text=to_markdown((await c.app()).journal.get_plan(p.plan_id)))
