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
from daiku.models.rules.replies.parse import ATTEMPTS, Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.coding.handover_text import work_so_far
from daiku.team.part import Part, Stage
from daiku.team.role import Failed, Role, merge_role_calls, messages_since_request
from daiku.team.rules.plans.proposed import as_proposed, objections
from daiku.team.rules.plans.reply import PlanReply, read_plan, sounds_like_machine
from daiku.team.rules.plans.steptext import planned_step
from daiku.team.rules.plans.transitions import checklist
from daiku.texts.text import Text, joined, text


class PlanVariables(Frozen):
    """What the planner is asked (R0.19); on re-planning also the plan so far and what came of it."""

    prompt: str
    plan: str
    happened: str


def plan_request(brief: Brief) -> str:
    """The request to the planner."""
    return render(
        "team/planner_request",
        PlanVariables(
            prompt=brief.request,
            plan=checklist(brief.plan) if brief.plan is not None else "",
            happened=work_so_far(brief),
        ),
    ).strip()


def plan_made(state: State) -> PlanMade | SaidInWords | Unreadable:
    """Return the plan proposed last. If it is missing or equals the given one: the reply instead, else Unreadable."""
    given = state.request.brief.plan if state.request.brief is not None else None
    newest = state.plans.all[-1] if state.plans.all else None
    old = given if newest is not None and given is not None and newest.plan_id == given.plan_id else None
    if newest is not None and newest.steps and (old is None or newest.steps != old.steps):
        return PlanMade(plan=newest)
    messages = state.conversation.messages
    last = messages[-1] if messages else None
    if (
        isinstance(last, AssistantMessage)
        and last.text.strip()
        and not last.calls
        and not _proposed(messages)
    ):
        return SaidInWords(text=last.text)
    return Unreadable(text("roles.no_plan") if old is None else text("roles.no_new_plan"))


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with a plan/propose call built from it if it makes none. Plain text counts after a proposal."""
    if any(call.tool == "plan/propose" for call in message.calls):
        return message
    if message.calls:
        return merge_role_calls(message, _form(message, messages, cut))
    if _proposed(messages) and message.text.strip():
        return Unreadable(text("roles.like_a_machine")) if sounds_like_machine(message.text) else message
    return _form(message, messages, cut)


def _form(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    if cut:
        return Unreadable(text("roles.plan_cut_off"))
    reply = read_plan(message.text)
    if isinstance(reply, Unreadable):
        return reply
    if wrong := objections(as_proposed(map(planned_step, reply.plans))):
        return Unreadable(joined("sentences", wrong))
    told: dict[str, JsonValue] = {"summary": reply.summary}
    args = proposal(reply)
    if why := _refused_before(args, messages):
        return Unreadable(Text(why))
    return AssistantMessage(
        text=Text(reply.reply),
        thinking=message.thinking,
        calls=(ToolCall(tool="plan/propose", args=args),),
        opaque={"daiku": told},
    )


def proposal(reply: PlanReply) -> JsonObject:
    """Build the arguments of plan/propose, without the goal: the tool knows the request."""
    steps: list[JsonValue] = [
        {
            "id": step.own,
            "name": step.name,
            "description": step.description,
            "depends_on": list(step.after),
            "acceptance": list(step.acceptance),
        }
        for step in as_proposed(map(planned_step, reply.plans))
    ]
    return {"name": reply.project, "focus": reply.focus, "summary": reply.summary, "steps": steps}


def prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Ask once for the plan that words alone do not propose; its words are accepted then."""
    return message if _proposed(messages) else Unreadable(text("roles.call_propose"))


def after_calls(messages: tuple[Message, ...]) -> AssistantMessage | Failed | None:
    """Return the plan's summary once the plan is accepted, Failed after too many rejected ones, else None."""
    here = messages_since_request(messages)
    refused = [
        m
        for m in _since_person(messages)
        if isinstance(m, ToolMessage) and m.tool == "plan/propose" and m.outcome == "failed"
    ]
    if len(refused) >= ATTEMPTS:
        why = text("team.no_plan", why=refused[-1].text.strip())
        return Failed(why, Failure(kind="format", message=why, hint=text("llm.ask_another_model")))
    answer = here[-1] if here else None
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    if not isinstance(answer, ToolMessage) or not answer.ok or spoke is None:
        return None
    told = spoke.opaque.get("daiku")
    if isinstance(told, dict) and "summary" in told:
        return AssistantMessage(text=Text(str(told["summary"])))
    return _summed_up(here, spoke)


def _summed_up(
    here: tuple[AssistantMessage | ToolMessage, ...], spoke: AssistantMessage
) -> AssistantMessage | None:
    """Return the summary of the plan that the model's own call proposed; None if it has none or made other calls."""
    match spoke.calls:
        case (ToolCall(id=own, tool="plan/propose", args=args),):
            summary = str(args.get("summary") or "").strip()
            done = any(isinstance(m, ToolMessage) and m.call_id == own and m.ok for m in here)
            return AssistantMessage(text=Text(summary)) if summary and done else None
        case _:
            return None


def _since_person(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What came since a person spoke; a reminder of ours is no word of theirs."""
    theirs = [n for n, m in enumerate(messages) if isinstance(m, UserMessage) and m.kind == "person"]
    return messages[theirs[-1] + 1 :] if theirs else messages


def _refused_before(args: JsonObject, messages: tuple[Message, ...]) -> str:
    """Why the very same plan was refused before; empty where it was not."""
    here = _since_person(messages)
    calls = (c for m in here if isinstance(m, AssistantMessage) for c in m.calls)
    same = {c.id for c in calls if c.tool == "plan/propose" and c.args == args}
    answers = (m for m in here if isinstance(m, ToolMessage) and m.call_id in same)
    return next((m.text.strip() for m in answers if m.outcome == "failed"), "")


def _proposed(messages: tuple[Message, ...]) -> bool:
    return any(
        isinstance(m, ToolMessage) and m.tool == "plan/propose" and m.ok
        for m in messages_since_request(messages)
    )


PLAN = Role(read, after_calls, prose=prose, has_result=_proposed)


PLANNER = Agent(
    "planner",
    Prompt("team/planner"),
    tools=(*LOOKING, "plan/propose", "user/ask"),
    part=Part(
        label=Label("Planner", "プランナー"),
        description="makes a plan of steps with their checks and shows it to the person",
        role=PLAN,
        knows_project=True,
        stage=Stage(plan_made, plan_request),
    ),
)


def planner_request(plan: Plan, chunks: Iterable[Chunk]) -> str:
    """Return the request from which the planner made the plan, since a goal may be no more than its headline; else the
    goal."""
    prompts: dict[str, str] = {}
    for chunk in chunks:
        match chunk.event:
            case RunStarted(prompt=prompt) if chunk.agent == PLANNER.name:
                prompts[chunk.run] = prompt
            case PlanEvent(plan=made) if made.plan_id == plan.plan_id:
                return prompts.get(chunk.run) or plan.goal
            case _:
                pass
    return plan.goal
