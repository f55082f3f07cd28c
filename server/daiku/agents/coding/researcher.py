"""The researcher: at most three queries for what a model does not know, carried out, cited by address."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.agents.agent import LOOKING, Agent, Stage
from daiku.agents.role import Role, merge_role_calls, messages_since_request
from daiku.core.plans.transitions import checklist
from daiku.core.replies.parse import Unreadable
from daiku.core.replies.roleforms import MAX_QUERIES, read_queries
from daiku.core.state.state import State
from daiku.core.web.research import distinct_queries, keywords, queries_of
from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, Findings
from daiku.domain.work.plans import Plan
from daiku.prompts import render
from daiku.texts.text import NO_TEXT, Text, as_json, joined, text

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
    """Build the researcher's request from a brief."""
    return research_request(brief.plan, brief.request)


def findings(state: State) -> Findings | Unreadable:
    """Return what the run found on the web; an empty result is valid."""
    return Findings(**dict(state.research))


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with the call that looks up its queries. Searches that the model makes itself count
    towards the limit of three. Plain text is accepted once a search has succeeded."""
    here = messages_since_request(messages)
    asked = distinct_queries(
        query for m in here if isinstance(m, AssistantMessage) for query in queries_of(m)
    )
    if message.calls:
        own = _within_three(message, asked)
        return merge_role_calls(own, _form(own, distinct_queries((*asked, *queries_of(own))), NO_TEXT, cut))
    known = joined(
        "paragraphs",
        [m.sources or m.text for m in here if isinstance(m, ToolMessage) and m.tool in SEARCHES and m.ok],
    )
    found = _form(message, asked, known, cut)
    looked = any(isinstance(m, ToolMessage) and m.ok for m in here)
    words = isinstance(found, Unreadable) and found.words_only and not cut
    return message if looked and words else found


def _form(
    message: AssistantMessage, asked: tuple[str, ...], sources: Text, cut: bool
) -> AssistantMessage | Unreadable:
    """What the form in a reply comes to, where `asked` was looked up already and gave `sources`."""
    reply = read_queries(message.text, cut=cut)
    if isinstance(reply, Unreadable):
        return reply
    known = {query.casefold() for query in asked}
    fresh = [q for q in distinct_queries(reply.queries) if q.casefold() not in known][
        : MAX_QUERIES - len(asked)
    ]
    told: dict[str, JsonValue] = {"queries": [*asked, *fresh], "askUser": reply.ask_user}
    if not reply.whole:
        told["remark"] = as_json(text("roles.no_ask_user"))
    if not fresh:
        said = joined("paragraphs", (sources, reply.ask_user)) or text("roles.nothing_to_look_up")
        return AssistantMessage(text=said, thinking=message.thinking, opaque={"daiku": told})
    queries: list[JsonValue] = list(fresh)
    return AssistantMessage(
        text=Text("\n".join(f"- {query}" for query in fresh)),
        thinking=message.thinking,
        calls=(ToolCall(tool="web/research", args={"queries": queries}),),
        opaque={"daiku": told},
    )


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept a plain-text answer as the result, unchanged."""
    return message


def after_calls(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """Return the sources found, by query, and any question to the person, once the reply's queries were
    looked up; else None."""
    here = messages_since_request(messages)
    answer = here[-1] if here else None
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    said = spoke.opaque.get("daiku") if spoke is not None else None
    if not isinstance(said, dict) or "queries" not in said:
        return None
    if not isinstance(answer, ToolMessage) or answer.tool != "web/research":
        return None
    asked = str(said.get("askUser") or "")
    if not answer.ok:
        return AssistantMessage(
            text=joined("paragraphs", (text("roles.not_looked_up", why=answer.text), asked))
        )
    return AssistantMessage(text=joined("paragraphs", (answer.sources or answer.text, asked)))


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
    note = text("roles.searches_left_out", count=over, most=MAX_QUERIES)
    return AssistantMessage(
        text=joined("paragraphs", (message.text, note)), thinking=message.thinking, calls=tuple(kept)
    )


RESEARCH = Role(read, after_calls, accept_plain_text=accept_plain_text)


RESEARCHER = Agent(
    name="researcher",
    label=Label("Researcher", "リサーチャー"),
    prompt="agents/researcher",
    description="looks up on the web what is not known, and names its sources",
    tools=(*LOOKING, "web/*", "user/ask"),
    role=RESEARCH,
    stage=Stage(findings, find_request),
)
