"""The researcher: at most three queries for what a model does not know, carried out, cited by address."""

from __future__ import annotations

import logging
from typing import Any, cast

from pydantic import JsonValue

from daiku.agents.role import Role, since_asked
from daiku.core.parse import Unreadable, read_json
from daiku.core.planning import checklist
from daiku.core.replies import MAX_QUERIES, QueriesReply, read_queries
from daiku.core.research import distinct, keywords, queries_of, sources_of
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.handovers import Brief, Findings
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.plans import Plan
from daiku.domain.tools import ToolCall
from daiku.prompts import render

log = logging.getLogger(__name__)

NOTHING = "Nothing needs to be looked up."
SEARCHES = ("web/search", "web/research")


class ResearchVariables(Frozen):
    """What the researcher is told of the work (R0.36)."""

    step_by_step_plan: str
    contextual_keywords: str
    question: str


def research_request(plan: Plan | None, question: str = "") -> str:
    """The request to the researcher: plan, keywords and question; keywords come from the plan's focus
    (C0.19), without a plan from the question."""
    focus = f"{plan.focus or plan.goal} {plan.name}" if plan is not None else question
    return render(
        "agents/researcher_request",
        ResearchVariables(
            step_by_step_plan=checklist(plan) if plan is not None else "",
            contextual_keywords=keywords(focus),
            question=question,
        ),
    )


def find_request(brief: Brief) -> str:
    """The request to the researcher from what it is given."""
    return research_request(brief.plan, brief.request)


def findings(state: State) -> Findings | Unreadable:
    """What was found; nothing found is valid too."""
    return Findings(**dict(state.research))


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """The reply with the call that looks its queries up. Searches that the model makes itself count
    towards the three."""
    here = since_asked(messages)
    asked = distinct(query for m in here if isinstance(m, AssistantMessage) for query in queries_of(m))
    if message.calls:
        return _within_three(message, asked)
    reply = _queries(message.text, cut)
    if isinstance(reply, Unreadable):
        if any(isinstance(m, ToolMessage) and m.tool.startswith("web/") for m in here):
            return message  # it has looked for itself, and says what it found
        return reply
    known = {query.casefold() for query in asked}
    fresh = [q for q in distinct(reply.queries) if q.casefold() not in known][: MAX_QUERIES - len(asked)]
    told: dict[str, JsonValue] = {"queries": [*asked, *fresh], "askUser": reply.ask_user}
    if not fresh:
        text = reply.ask_user or ("" if asked else NOTHING)
        return AssistantMessage(text=text, thinking=message.thinking, opaque={"daiku": told})
    queries: list[JsonValue] = list(fresh)
    return AssistantMessage(
        text="\n".join(f"- {query}" for query in fresh),
        thinking=message.thinking,
        calls=(ToolCall(tool="web/research", args={"queries": queries}),),
        opaque={"daiku": told},
    )


def go_on(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """What was found, once the queries of a reply were looked up: sources by query, then the question
    to the person."""
    here = since_asked(messages)
    answer = here[-1] if here else None
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    if not isinstance(answer, ToolMessage) or spoke is None or "daiku" not in spoke.opaque:
        return None
    said = cast("dict[str, Any]", spoke.opaque["daiku"])
    found = sources_of(answer.text) if answer.ok else f"Nothing was looked up: {answer.text}"
    return AssistantMessage(
        text="\n\n".join(part for part in (found, str(said.get("askUser") or "")) if part)
    )


def _queries(text: str, cut: bool) -> QueriesReply | Unreadable:
    """Both keys are asked for; a list of queries alone is taken with a warning (C0.1)."""
    reply = read_queries(text, cut=cut)
    if not isinstance(reply, Unreadable):
        return reply
    lenient = read_json(text, _with_ask_user, cut=cut)
    if isinstance(lenient, Unreadable):
        return reply
    log.warning("the researcher's reply has no ask_user; taken as empty")
    return lenient


def _with_ask_user(value: JsonValue) -> QueriesReply:
    if isinstance(value, dict) and isinstance(value.get("queries"), list):
        value = {"ask_user": "", **value}
    return QueriesReply.model_validate(value)


def _within_three(message: AssistantMessage, asked: tuple[str, ...]) -> AssistantMessage:
    """The reply without the searches that would be more than three."""
    left = MAX_QUERIES - len(asked)
    kept: list[ToolCall] = []
    over = 0
    for call in message.calls:
        if call.tool not in SEARCHES:
            kept.append(call)
            continue
        wanted = queries_of(AssistantMessage(calls=(call,)))
        if len(wanted) > left:
            over += len(wanted) - left
            wanted = wanted[:left]
            if call.tool == "web/research" and wanted:
                queries: list[JsonValue] = list(wanted)
                call = call.model_copy(update={"args": {**call.args, "queries": queries}})
        if wanted:
            kept.append(call)
            left -= len(wanted)
    if not over:
        return message
    note = f"({over} searches left out: there are {MAX_QUERIES} in all.)"
    return AssistantMessage(
        text=f"{message.text}\n\n{note}".strip(), thinking=message.thinking, calls=tuple(kept)
    )


RESEARCH = Role(read, go_on)
