"""The planner agent: turns a request into a plan, for people to read and for the team to execute."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from daiku.domain.base import Frozen, JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import PlanEvent, RunStarted
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, PlanMade, SaidInWords
from daiku.domain.work.plans import Plan
from daiku.models.rules.replies.parse import MAX_ATTEMPTS, Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.coding.handover_text import format_work_so_far
from daiku.team.part import Part, Stage
from daiku.team.role import Failed, Role, merge_role_calls, select_messages_since_request
from daiku.team.rules.plans.proposed import as_proposed, find_proposal_problems
from daiku.team.rules.plans.reply import PlanReply, is_machine_like, parse_planned_step, read_plan
from daiku.team.rules.plans.transitions import render_checklist
from daiku.texts.text import Text, joined, text


class PlanVariables(Frozen):
    """Template variables of the planner's request (R0.19); for re-planning also the plan and its results so far."""

    prompt: str
    plan: str
    happened: str


def build_plan_request(brief: Brief) -> str:
    """Build the planner's request."""
    return render(
        "agents/planner_request",
        PlanVariables(
            prompt=brief.request,
            plan=render_checklist(brief.plan) if brief.plan is not None else "",
            happened=format_work_so_far(brief),
        ),
    ).strip()


def find_plan(state: State) -> PlanMade | SaidInWords | Unreadable:
    """Return the latest proposed plan.

    If it is missing or equals the plan of the brief: the reply's text if that counts as the answer, else Unreadable.
    """
    briefed = state.request.brief.plan if state.request.brief is not None else None
    newest = state.plans.all[-1] if state.plans.all else None
    old = (
        briefed if newest is not None and briefed is not None and newest.plan_id == briefed.plan_id else None
    )
    if newest is not None and newest.steps and (old is None or newest.steps != old.steps):
        return PlanMade(plan=newest)
    messages = state.conversation.messages
    last = messages[-1] if messages else None
    if (
        isinstance(last, AssistantMessage)
        and last.text.strip()
        and not last.calls
        and not _has_proposed(messages)
    ):
        return SaidInWords(text=last.text)
    return Unreadable(text("roles.no_plan") if old is None else text("roles.no_new_plan"))


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with a plan/propose call built from its text if it has none.

    Plain text is accepted after a proposal.
    """
    if any(call.tool == "plan/propose" for call in message.calls):
        return message
    if message.calls:
        return merge_role_calls(message, _parse_form(message, messages, cut))
    if _has_proposed(messages) and message.text.strip():
        return Unreadable(text("roles.like_a_machine")) if is_machine_like(message.text) else message
    return _parse_form(message, messages, cut)


def _parse_form(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    if cut:
        return Unreadable(text("roles.plan_cut_off"))
    reply = read_plan(message.text)
    if isinstance(reply, Unreadable):
        return reply
    if problems := find_proposal_problems(as_proposed(map(parse_planned_step, reply.plans))):
        return Unreadable(joined("sentences", problems))
    data: dict[str, JsonValue] = {"summary": reply.summary}
    args = build_proposal(reply)
    if rejection := _find_earlier_rejection(args, messages):
        return Unreadable(Text(rejection))
    return AssistantMessage(
        text=Text(reply.reply),
        thinking=message.thinking,
        calls=(ToolCall(tool="plan/propose", args=args),),
        opaque={"daiku": data},
    )


def build_proposal(reply: PlanReply) -> JsonObject:
    """Build the arguments of plan/propose, without the goal: the tool knows the request."""
    steps: list[JsonValue] = [
        {
            "id": step.own,
            "name": step.name,
            "description": step.description,
            "depends_on": list(step.after),
            "acceptance": list(step.acceptance),
        }
        for step in as_proposed(map(parse_planned_step, reply.plans))
    ]
    return {"name": reply.project, "focus": reply.focus, "summary": reply.summary, "steps": steps}


def judge_prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Ask once for a proposal if the reply is plain text; accept the text after that."""
    return message if _has_proposed(messages) else Unreadable(text("roles.call_propose"))


def continue_after_calls(messages: tuple[Message, ...]) -> AssistantMessage | Failed | None:
    """Return the plan's summary once the plan is accepted, Failed after too many rejected ones, else None."""
    recent = select_messages_since_request(messages)
    rejected = [
        m
        for m in _select_messages_since_user(messages)
        if isinstance(m, ToolMessage) and m.tool == "plan/propose" and m.outcome == "failed"
    ]
    if len(rejected) >= MAX_ATTEMPTS:
        why = text("team.no_plan", why=rejected[-1].text.strip())
        return Failed(why, Failure(kind="format", message=why, hint=text("llm.ask_another_model")))
    result = recent[-1] if recent else None
    reply = next((m for m in reversed(recent) if isinstance(m, AssistantMessage)), None)
    if not isinstance(result, ToolMessage) or not result.ok or reply is None:
        return None
    data = reply.opaque.get("daiku")
    if isinstance(data, dict) and "summary" in data:
        return AssistantMessage(text=Text(str(data["summary"])))
    return _find_summary(recent, reply)


def _find_summary(
    recent: tuple[AssistantMessage | ToolMessage, ...], reply: AssistantMessage
) -> AssistantMessage | None:
    """Return the summary of the plan that the model's own call proposed; None if it has none or made other calls."""
    match reply.calls:
        case (ToolCall(id=call_id, tool="plan/propose", args=args),):
            summary = str(args.get("summary") or "").strip()
            accepted = any(isinstance(m, ToolMessage) and m.call_id == call_id and m.ok for m in recent)
            return AssistantMessage(text=Text(summary)) if summary and accepted else None
        case _:
            return None


def _select_messages_since_user(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages after the user's last one; reminders do not count as the user's."""
    positions = [n for n, m in enumerate(messages) if isinstance(m, UserMessage) and m.kind == "person"]
    return messages[positions[-1] + 1 :] if positions else messages


def _find_earlier_rejection(args: JsonObject, messages: tuple[Message, ...]) -> str:
    """Return why an identical plan was rejected before; empty if it was not."""
    recent = _select_messages_since_user(messages)
    calls = (c for m in recent if isinstance(m, AssistantMessage) for c in m.calls)
    call_ids = {c.id for c in calls if c.tool == "plan/propose" and c.args == args}
    results = (m for m in recent if isinstance(m, ToolMessage) and m.call_id in call_ids)
    return next((m.text.strip() for m in results if m.outcome == "failed"), "")


def _has_proposed(messages: tuple[Message, ...]) -> bool:
    return any(
        isinstance(m, ToolMessage) and m.tool == "plan/propose" and m.ok
        for m in select_messages_since_request(messages)
    )


PLAN = Role(read, continue_after_calls, prose=judge_prose, has_result=_has_proposed)


PLANNER = Agent(
    "planner",
    Prompt("agents/planner"),
    tools=(*LOOKING, "plan/propose", "user/ask"),
    part=Part(
        label=Label("Planner", "プランナー"),
        description="makes a plan of steps with their checks and shows it to the person",
        role=PLAN,
        knows_project=True,
        stage=Stage(find_plan, build_plan_request),
    ),
)


def find_planner_request(plan: Plan, chunks: Iterable[Chunk]) -> str:
    """Return the request that the planner made the plan from; a goal may be only its first line.

    Falls back to the plan's goal.
    """
    prompts: dict[str, str] = {}
    for chunk in chunks:
        match chunk.event:
            case RunStarted(prompt=prompt) if chunk.agent == PLANNER.name:
                prompts[chunk.run] = prompt
            case PlanEvent(plan=proposed) if proposed.plan_id == plan.plan_id:
                return prompts.get(chunk.run) or plan.goal
            case _:
                pass
    return plan.goal
